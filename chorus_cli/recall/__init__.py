"""Recall: what a search or a question brings back, from the log and from the memory."""
