"""Imports conversations of other programs into the log, and exports conversations from the log.

An import is one operation for each persona. Its rows name the operation and keep their own times. Source, conversation
and message identify a row, so an import can be repeated. All rows of a conversation are stored in one transaction. A
conversation's live branch is the one that it ended with; a newer import may move messages off this branch, or back. A
conversation or a line that cannot be read is skipped, and counted by its reason.
"""
