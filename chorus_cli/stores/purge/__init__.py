"""A purge: what it finds, overwrites and rewrites."""
