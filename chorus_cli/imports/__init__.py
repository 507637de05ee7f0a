"""Imports conversations of other programs into the log, and exports conversations from the log.

An import is one operation for each persona. Its rows name it and keep their own times. Source, conversation and
message identify a row, so an import can be repeated. All rows of a conversation are stored in one transaction. A
newer import may move messages off the live branch, or back. A conversation or a line that cannot be read is skipped,
and counted by its reason.
"""
