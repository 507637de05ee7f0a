"""Threads: the commands."""
