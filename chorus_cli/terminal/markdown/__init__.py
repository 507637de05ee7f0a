"""Markdown on a terminal, painted while it arrives."""
