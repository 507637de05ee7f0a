"""Threads: the use cases."""
