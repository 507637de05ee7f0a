"""Threads: the conversations of a persona, and the replies in progress, at most one in each thread.

The state of a thread is computed and not stored. A process that writes a reply holds a lock on `state/run/<run>`; if
the lock is free, the reply is `interrupted`.
"""
