"""Models: the protocols and the connections by which Chorus asks models directly over HTTP."""
