"""Memory of rules."""
