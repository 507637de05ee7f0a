"""The log and the journal: rows of messages and operations. Chorus only adds rows, except that a purge overwrites some.

`rules/journal` decides which operations count, and what an undo or a redo means. Some SQL repeats these rules, and
stateful tests compare the two. A finished message keeps its words; Chorus may fill in a missing token count. The
full-text index is filled in the background, never in a message's transaction.
"""
