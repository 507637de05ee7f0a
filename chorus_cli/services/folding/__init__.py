"""Folds: the oldest turns become the summary."""
