"""Personas: folders with settings and documents, and their names in the log.

The file of the settings is the truth; the journal follows it.
"""
