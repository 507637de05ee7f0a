"""Stores of salvage."""
