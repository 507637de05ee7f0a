"""Context: the use cases."""
