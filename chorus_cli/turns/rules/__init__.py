"""Turns of rules."""
