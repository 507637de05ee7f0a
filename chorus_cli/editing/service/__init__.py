"""Editing of service."""
