"""Stores of purge."""
