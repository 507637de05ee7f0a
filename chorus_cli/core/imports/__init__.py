"""Conversations of other programs: their values, and one module for each format."""
