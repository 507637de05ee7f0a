"""Files that are attached to messages: what they are, what they cost, and how they are named in a message."""
