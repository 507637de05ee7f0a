"""Time, text, JSON, errors and limits: pure, for every room."""
