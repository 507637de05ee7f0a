"""Personas: folders with settings and documents, and their names in the log.

A persona's files are read again when their fingerprint changes (times, inode, size); a file changed within the last
two seconds is not trusted. Archiving adds `.archived`; deleting moves the folder away; the name stays in the log.
"""
