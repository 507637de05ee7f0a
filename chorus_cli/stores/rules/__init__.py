"""Stores of rules."""
