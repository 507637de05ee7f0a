"""Terminal of reply."""
