"""Settings of rules."""
