"""Models of local."""
