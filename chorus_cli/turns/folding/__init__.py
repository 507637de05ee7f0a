"""Turns: the folding."""
