"""Cards: the use cases."""
