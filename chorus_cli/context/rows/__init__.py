"""Context: the rows."""
