"""A reply on the screen while it arrives."""
