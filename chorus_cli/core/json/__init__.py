"""Core of json."""
