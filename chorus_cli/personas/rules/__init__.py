"""Personas: the rules: values and pure functions."""
