"""Models of eliza."""
