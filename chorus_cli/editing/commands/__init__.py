"""Editing: the commands."""
