"""Threads of commands."""
