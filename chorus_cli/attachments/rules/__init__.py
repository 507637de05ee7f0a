"""Attachments of rules."""
