"""The store of the log, in SQLite or on a PostgreSQL server, its migrations, atomic writes of files, and locks.

One thread owns the database connection, and services await its work. If the home cannot be written, Chorus reads a
private copy of the log, and the copy refuses new rows. A migration is never edited once it has landed.
"""
