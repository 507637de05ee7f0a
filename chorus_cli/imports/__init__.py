"""Imports."""
