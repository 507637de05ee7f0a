"""Finds the rows and files that a purge concerns, overwrites them, and rewrites backups."""
