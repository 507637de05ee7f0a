"""Editing of rules."""
