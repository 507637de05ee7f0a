"""The SQLite store with its migrations, atomic files and locks.

One thread owns the connection; services await it. A home that cannot be written is read from a private copy of its
log, which refuses new rows. A migration that has landed is never edited.
"""
