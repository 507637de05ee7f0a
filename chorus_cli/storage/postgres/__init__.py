"""The log on a PostgreSQL server, with the "file beside": a SQLite file for the tables that belong to this machine.

Statements are written once, for SQLite. `statements` translates the few words that PostgreSQL lacks. `tables` makes the
server's tables from SQLite's, and adds functions with SQLite's names. `connection` sends each statement to the server
or to the file beside.
"""
