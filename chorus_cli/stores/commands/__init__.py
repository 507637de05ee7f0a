"""Stores of commands."""
