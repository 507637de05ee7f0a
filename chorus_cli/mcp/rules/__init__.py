"""What servers declare and answer, as the model and the user get it."""
