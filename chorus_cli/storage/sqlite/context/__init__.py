"""Rows that a context is computed from."""
