"""Models: the ELIZA."""
