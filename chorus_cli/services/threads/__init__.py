"""Threads: several conversations at once."""
