"""Backup, restore, purge, doctor and salvage. All five walk `listing`, the places that can hold the user's words.

A purge empties rows in one transaction, which also stores the ids of the rows and the planned changes of files. Then
the log's file is made anew. A backup is written under a temporary name. A single rename decides a restore. Once a
purge or a restore is decided, it is carried to its end, if need be by the next start: every step can be repeated.
"""
