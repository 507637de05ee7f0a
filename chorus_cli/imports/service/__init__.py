"""Imports of service."""
