"""Backup, restore, purge, doctor and salvage.

Only a purge overwrites, and only a restore replaces; both are decided at one moment and carried on by the next start.
"""
