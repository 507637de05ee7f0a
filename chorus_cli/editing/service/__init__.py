"""Editing: the use cases."""
