"""Terminal of markdown."""
