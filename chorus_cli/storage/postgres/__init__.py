"""PostgreSQL as the log: the log is on a server, and what belongs to this machine in a SQLite file beside it.

Statements are written once, for SQLite. `statements` translates the few words that PostgreSQL lacks, `tables` makes the
tables of the server from those of SQLite, with functions of the names that SQLite has, and `connection` sends a
statement to the server or to the file.
"""
