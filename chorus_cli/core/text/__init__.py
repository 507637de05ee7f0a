"""Text: made safe to show, cut to size, cleared of keys."""
