"""Turns of commands."""
