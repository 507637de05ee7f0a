"""Jobs of service."""
