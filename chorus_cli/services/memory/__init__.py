"""The memory of a persona: items, flash saves and checkpoints."""
