"""The log and the journal: messages and operations are rows that are only ever added, but for a purge.

Which operations count, and what an undo or a redo means, is decided in `rules/journal` alone; stateful tests hold the
SQL that repeats it against it. What was said never changes: only the process that writes a reply in progress changes
it, and a missing token count is filled in. The full-text index is filled behind the talk, never in a message's
transaction.
"""
