"""Models of rules."""
