"""Editing: the rules: values and pure functions."""
