"""The Model Context Protocol: the rules: values and pure functions."""
