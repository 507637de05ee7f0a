"""Copies a log into another log, such as the log of this machine into a log on a server."""
