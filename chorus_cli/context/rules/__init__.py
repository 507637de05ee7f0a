"""Context of rules."""
