"""Copies a log into another one, such as that of this machine into that on a server."""
