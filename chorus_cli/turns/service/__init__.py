"""Turns of service."""
