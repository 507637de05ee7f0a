"""Models: the models asked directly over HTTP."""
