"""Turns: the use cases."""
