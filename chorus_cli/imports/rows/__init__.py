"""Imports of rows."""
