"""Which servers the settings name, and what servers declare and answer, as the model and the user get it."""
