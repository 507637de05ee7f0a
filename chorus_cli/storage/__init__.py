"""The SQLite store and its migrations, atomic writes of files, and locks.

One thread owns the database connection, and services await its work. If a home cannot be written, Chorus reads a
private copy of its log, and the copy refuses new rows. A migration is never edited once it has landed.
"""
