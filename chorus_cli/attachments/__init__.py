"""Attachments: files of a message.

The bytes are stored before the message, once for each SHA-256; the message's row holds names, sizes and hashes. A model
is sent files of the kinds that it takes, and the names of other files. A client loads bytes as it encodes a message.
"""
