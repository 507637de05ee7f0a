"""Personas as their files describe them."""
