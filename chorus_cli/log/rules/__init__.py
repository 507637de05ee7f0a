"""Log of rules."""
