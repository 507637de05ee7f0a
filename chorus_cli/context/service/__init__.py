"""Context of service."""
