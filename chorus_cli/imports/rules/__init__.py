"""Imports: the rules: values and pure functions."""
