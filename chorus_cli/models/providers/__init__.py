"""Models: the providers, their rules, and the facts that Chorus knows about their models."""
