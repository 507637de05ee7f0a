"""Models of service."""
