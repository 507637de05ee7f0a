"""Sessions of rows."""
