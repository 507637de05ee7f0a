"""Editing: the files."""
