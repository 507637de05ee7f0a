"""The prompt: the line that is typed, its keys, history and completion."""
