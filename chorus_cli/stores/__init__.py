"""Backup, restore, purge, doctor and salvage, which walk one list of the places where words can be (`listing`).

A purge empties rows in one transaction, with an operation that names their ids, and stores what becomes of files;
then the log's file is made anew. A backup is written and checked under a temporary name, and a restore is decided by
one rename. What is decided is carried to its end, by the next start if need be; every step can be repeated.
"""
