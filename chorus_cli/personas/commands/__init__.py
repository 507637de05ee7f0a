"""Personas of commands."""
