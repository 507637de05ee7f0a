"""The log and the journal: messages and operations are rows that are only ever added, but for a purge.

Order is that of turns, then of ids; a timestamp only decides age.
What an undo means is decided in `rules/journal` alone.
"""
