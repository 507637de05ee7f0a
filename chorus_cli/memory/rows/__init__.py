"""Memory of rows."""
