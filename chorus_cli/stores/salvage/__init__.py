"""Salvage: a new log from a damaged one."""
