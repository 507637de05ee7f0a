"""Attachments of service."""
