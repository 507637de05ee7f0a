"""Memory: the rules: values and pure functions."""
