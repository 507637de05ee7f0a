"""Text: making it safe to show, finding keys in it, and shortening it."""
