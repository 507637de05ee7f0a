"""Tools of service."""
