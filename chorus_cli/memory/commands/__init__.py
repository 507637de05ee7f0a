"""Memory: the commands."""
