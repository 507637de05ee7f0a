"""A turn: from the message to the end of its reply."""
