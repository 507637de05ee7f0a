"""Examines logs, and reads the rows of damaged logs."""
