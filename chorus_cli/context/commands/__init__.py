"""Context of commands."""
