"""Attachments: the files."""
