"""Shell commands, in the foreground or in the background.

Each job is a session of processes without a terminal. A watcher in the job's process group waits on a pipe that only
Chorus can write to, and kills the group when the pipe closes. The news of ended jobs is taken for a message before the
transaction that stores the message, and put back if the transaction fails.
"""
