"""Personas of rows."""
