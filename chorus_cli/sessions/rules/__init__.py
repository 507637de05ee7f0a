"""Sessions: the rules: values and pure functions."""
