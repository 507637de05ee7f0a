"""Backup, restore, purge, doctor and salvage. `listing` lists the places that can hold the user's words.

One transaction of a purge overwrites the rows, and stores their ids and the planned changes of files. Then the purge
rewrites the file of the log. A backup is written under a temporary name. A single rename decides a restore. If a
process is killed after the decision on a purge or a restore, the next start completes it: every step can be repeated.
"""
