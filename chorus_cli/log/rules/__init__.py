"""Log: the rules: values and pure functions."""
