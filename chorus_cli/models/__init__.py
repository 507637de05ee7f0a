"""Models: the choice of a model, its costs, and the clients that ask it.

No other package asks providers. The size of every answer is limited before other code reads it. `providers/failures`
writes the sentences for the user about failed requests. A model in a file runs in a process of its own, because
loading a model holds Python's lock for seconds. That process ends at the latest when Chorus ends.
"""
