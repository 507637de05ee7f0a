"""Personas: the use cases."""
