"""Models: which one answers, what it costs, and the clients that ask it.

No other room asks a server. Any failure is a `Failure`, whose sentence is in `providers/failures`.
"""
