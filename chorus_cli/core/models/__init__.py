"""Models: their names, requests, events and outcomes."""
