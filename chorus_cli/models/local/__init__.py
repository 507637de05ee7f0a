"""Models: the models in files."""
