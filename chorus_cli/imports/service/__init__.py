"""Imports: the use cases."""
