"""Attachments of files."""
