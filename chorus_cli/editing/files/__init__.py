"""Editing of files."""
