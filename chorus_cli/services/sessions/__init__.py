"""Sessions: saved, listed, restored, saved when idle."""
