"""Personas of rules."""
