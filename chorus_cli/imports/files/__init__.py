"""Imports: the files."""
