"""Attachments: files that go with a message.

Their bytes are stored before the message, once by their SHA-256; the row holds names, sizes and hashes. A request
names only the kinds that its model takes, and a client loads the bytes when it encodes the message.
"""
