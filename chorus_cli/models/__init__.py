"""Models: which one answers, what it costs, and the clients that ask it.

No other room asks a server. Every answer of a server is bounded before anything works on it. Any failure is a
`Failure`, whose sentence is in `providers/failures`. A model in a file runs in a process of its own, because loading
it holds Python's lock for seconds; that process ends when its standard input does.
"""
