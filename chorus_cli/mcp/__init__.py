"""The Model Context Protocol: what other programs may read here.

Only `serving` speaks the protocol. Other programs read; they see no persona that the user hides, and change no word.
"""
