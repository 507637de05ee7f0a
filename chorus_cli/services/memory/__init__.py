"""The memory of a persona."""
