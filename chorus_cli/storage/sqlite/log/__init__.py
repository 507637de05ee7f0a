"""Rows of the log and its journal."""
