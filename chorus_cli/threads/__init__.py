"""Threads: the conversations of a persona, and the replies in progress in them, one at a time in each."""
