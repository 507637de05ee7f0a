"""Memory of commands."""
