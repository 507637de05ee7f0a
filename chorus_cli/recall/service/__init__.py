"""Recall: the use cases."""
