"""A reply on the screen while it streams."""
