"""Rows of imported conversations."""
