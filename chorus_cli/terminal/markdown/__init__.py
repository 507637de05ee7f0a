"""Markdown, drawn while it streams."""
