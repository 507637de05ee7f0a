"""Memory: the rows."""
