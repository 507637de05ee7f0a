"""Conversations of other programs come into the log, and go out of it.

An import is one operation without members: its rows name it, keep their own time, and are known by source,
conversation and message, so that it can be repeated. All rows of a conversation are stored in one transaction. A
newer import may move messages off the live branch, or back. What cannot be read is an ``ImportFormatError``, with the
reason as its text; a conversation or a line is skipped for it, and counted.
"""
