"""Files on their way into a message."""
