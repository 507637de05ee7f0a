"""Sessions of rules."""
