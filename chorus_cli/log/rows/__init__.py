"""Log of rows."""
