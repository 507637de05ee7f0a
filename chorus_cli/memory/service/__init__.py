"""Memory of service."""
