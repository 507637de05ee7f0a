"""Commands of the shell, in the foreground or behind the conversation.

Each job is a session of processes without a terminal. A watcher in its process group waits on a pipe that only Chorus
can write to, and kills the group when the pipe closes. The news for a message are taken before the transaction that
stores it, and put back if the transaction fails.
"""
