"""Attachments: files that go with a message.

Their bytes are stored once, by their SHA-256, before the message that names them; rows hold names, sizes and hashes.
"""
