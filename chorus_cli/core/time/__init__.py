"""Core of time."""
