"""Threads: the conversations of a persona, and the replies in progress in them, one at a time in each.

The state of a thread is derived, never stored. A process that writes a reply holds a lock on `state/run/<run>`; if
the lock is free, the reply is `interrupted`.
"""
