"""Commands of the shell, in the foreground or behind the conversation.

A watcher in the group of each kills it when Chorus is gone.
"""
