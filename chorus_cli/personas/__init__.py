"""Personas: folders with settings and documents, and their names in the log.

A persona's files are read again when their fingerprint (times, inode, size) changes. Archiving adds the file
`.archived` to the folder. Deleting moves the folder to the backups; the rows in the log keep the persona's name.
"""
