"""Models of wire."""
