"""Sessions of service."""
