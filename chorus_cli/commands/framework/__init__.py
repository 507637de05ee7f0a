"""Commands in general: declaration, parsing, completion, answers."""
