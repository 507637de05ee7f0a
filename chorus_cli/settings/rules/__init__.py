"""Settings: the rules: values and pure functions."""
