"""Imports of commands."""
