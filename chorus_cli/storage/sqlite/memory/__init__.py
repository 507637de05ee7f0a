"""Memory items and checkpoints in the database."""
