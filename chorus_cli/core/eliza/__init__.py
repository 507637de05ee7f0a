"""ELIZA, the embedded model."""
