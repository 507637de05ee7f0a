"""Writes backups, restores them, and salvages a damaged log."""
