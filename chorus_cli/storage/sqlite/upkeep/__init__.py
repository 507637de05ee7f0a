"""The database as a file: copied, checked, and salvaged row by row."""
