"""Turns of folding."""
