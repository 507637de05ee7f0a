"""Cards: the rules: values and pure functions."""
