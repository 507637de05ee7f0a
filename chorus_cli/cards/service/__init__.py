"""Cards of service."""
