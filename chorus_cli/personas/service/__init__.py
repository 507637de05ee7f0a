"""Personas of service."""
