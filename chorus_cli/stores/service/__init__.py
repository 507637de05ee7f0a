"""Stores of service."""
