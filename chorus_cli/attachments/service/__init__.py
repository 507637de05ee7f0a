"""Attachments: the use cases."""
