"""Recall of service."""
