"""Imports of files."""
