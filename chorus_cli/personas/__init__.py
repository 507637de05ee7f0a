"""Personas."""
