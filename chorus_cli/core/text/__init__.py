"""Core of text."""
