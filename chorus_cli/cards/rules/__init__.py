"""Cards of rules."""
