"""Imports of rules/own."""
