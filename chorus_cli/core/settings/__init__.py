"""Settings: their table, their values, and files in JSON with comments."""
