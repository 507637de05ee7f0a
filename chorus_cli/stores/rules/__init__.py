"""Stores: the rules: values and pure functions."""
