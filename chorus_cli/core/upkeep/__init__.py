"""Backups and the state of the user's data: their values."""
