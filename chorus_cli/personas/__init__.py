"""Personas: folders with settings and documents; a folder's name is the key of its persona in the log.

A persona's files are read again when their fingerprint (times, inode, size) changes. Archiving adds the file
`.archived` to the folder. Deleting moves the folder to the backups; the persona's rows stay in the log.
"""
