"""The context in the user's editor, and text that was typed and not sent.

An edited text is compared with the rows it was made of; an untouched message stays the row that it is. If anything
else changed the context meanwhile, the edit gives way and its draft is kept.
"""
