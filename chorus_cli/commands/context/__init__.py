"""Commands of the context."""
