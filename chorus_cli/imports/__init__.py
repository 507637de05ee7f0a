"""Imports conversations of other programs into the log, and exports conversations from the log.

An import is one operation for each persona that gets messages. Each imported row names this operation and keeps the
message's own time. Persona, source, conversation and message identify a row, so repeating an import adds no duplicates.
All rows of a conversation are stored in one transaction. The live branch of a conversation is the branch that it ended
with; a newer import may move messages off this branch, or back to it. Unreadable parts are skipped and counted.
"""
