"""The SQLite store with its migrations, atomic files and locks.

One thread owns the connection; services await it.
"""
