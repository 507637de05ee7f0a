"""Turns of rows."""
