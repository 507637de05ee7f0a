"""Backup, restore, purge, doctor, salvage, copies of a log. `listing` lists the places that can hold the user's words.

One transaction of a purge overwrites the rows, and stores their ids and the planned changes of files. Then the purge
changes these files and rewrites the file of the log. A backup is written under a temporary name. A single rename
decides a restore. If a process is killed after the decision on a purge or a restore, the next start completes it.
"""
