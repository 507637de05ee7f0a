"""Stores: the use cases."""
