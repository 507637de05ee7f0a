"""Imports of rules."""
