"""Settings: their table and their files. A change replaces one value, keeps the comments, and is written atomically."""
