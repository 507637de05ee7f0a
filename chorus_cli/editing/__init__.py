"""The context in the user's editor, and text that was typed and not sent.

A message that was left alone stays the row that it is.
"""
