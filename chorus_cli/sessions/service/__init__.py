"""Sessions: the use cases."""
