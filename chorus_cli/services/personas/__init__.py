"""Personas and the focus on one of them."""
