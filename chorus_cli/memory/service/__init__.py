"""Memory: the use cases."""
