"""Jobs of rules."""
