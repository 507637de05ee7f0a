"""Backups, and what a restore puts in their place."""
