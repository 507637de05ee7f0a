"""Recall: finds messages and memory items for a search or for the preamble of a question."""
