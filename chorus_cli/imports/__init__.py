"""Conversations of other programs come into the log, and go out of it.

An import is one operation; its rows are known by source, conversation and message, so that it can be repeated.
"""
