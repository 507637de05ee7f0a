"""Personas: the commands."""
