"""Models: the providers and their rules."""
