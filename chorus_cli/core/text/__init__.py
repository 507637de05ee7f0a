"""Text: what is safe to show, what is a key, and how it is shortened."""
