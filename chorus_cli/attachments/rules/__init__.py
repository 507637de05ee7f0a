"""Attachments: the rules: values and pure functions."""
