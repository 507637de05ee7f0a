"""Imports: the rows."""
