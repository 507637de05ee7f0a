"""Stores: the commands."""
