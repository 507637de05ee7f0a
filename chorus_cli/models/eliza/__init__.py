"""Models: ELIZA and its script."""
