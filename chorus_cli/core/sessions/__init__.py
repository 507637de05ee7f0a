"""Saved sessions: format, names, and matching with the log."""
