"""Editing of commands."""
