"""Commands on settings and models, of a persona and of the run."""
