"""The prompt: line, keys, completion, history, toolbar."""
