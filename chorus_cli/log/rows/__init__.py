"""Log: the rows."""
