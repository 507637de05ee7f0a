"""Settings: one table, their files with comments, changed one value at a time and replaced atomically."""
