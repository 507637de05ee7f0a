"""Personas: the rows."""
