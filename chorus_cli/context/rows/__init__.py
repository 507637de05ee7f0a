"""Context of rows."""
