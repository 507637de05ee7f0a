"""Models: the use cases."""
