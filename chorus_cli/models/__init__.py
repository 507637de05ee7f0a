"""Models: the choice of a model, its costs, and the clients that ask it.

No other room asks a provider. The size of every answer is limited before other code reads it. A failed request becomes
a `Failure`, for which `providers/failures` has a sentence. A model in a file runs in a process of its own, because
loading it holds Python's lock for seconds. That process ends when its standard input closes, at the latest with Chorus.
"""
