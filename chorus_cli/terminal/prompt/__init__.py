"""Terminal of prompt."""
