"""Commands of the shell, in the foreground or behind the conversation.

Each job is a session of processes without a terminal. A watcher in its process group waits on a pipe that only Chorus
can write to, and kills the group when the pipe closes. News are taken before the transaction that stores a message, and
put back if the transaction fails.
"""
