"""Purges: the rows and files that hold a text, and overwriting them."""
