"""Terminal of screen."""
