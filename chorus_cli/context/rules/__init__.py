"""Context: the rules: values and pure functions."""
