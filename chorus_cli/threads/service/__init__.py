"""Threads of service."""
