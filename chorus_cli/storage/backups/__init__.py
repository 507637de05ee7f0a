"""Backups: the log and the files beside it, in one archive."""
