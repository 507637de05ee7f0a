"""Upkeep of the user's data: backups, the checks of the doctor, and rescued texts."""
