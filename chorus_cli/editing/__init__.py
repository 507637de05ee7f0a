"""Editing."""
