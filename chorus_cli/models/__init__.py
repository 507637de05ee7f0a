"""Models: the choice of a model, its costs, and the clients that ask it.

No other package asks providers. The size of every answer is limited before other code reads it. Each failed request
becomes a `Failure`, and `providers/failures` turns it into a sentence for the user. A model in a file runs in a process
of its own, because loading a model holds Python's lock for seconds. That process ends at the latest when Chorus ends.
"""
