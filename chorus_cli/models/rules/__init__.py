"""Models: the rules: values and pure functions."""
