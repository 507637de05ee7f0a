"""Rows of texts that are not said yet."""
