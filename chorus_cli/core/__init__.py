"""Time, text, JSON, errors and limits: pure code that every other package may use."""
