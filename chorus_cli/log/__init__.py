"""The log and the journal: rows of messages and operations. Chorus adds rows and deletes none; a purge overwrites some.

`rules/journal` decides which operations count, and computes the effect of undos and redos. Some SQL repeats these
rules, and stateful tests compare the two. A finished message keeps its words; Chorus may fill in a missing token count.
Messages enter the full-text index in transactions of their own, after they are stored.
"""
