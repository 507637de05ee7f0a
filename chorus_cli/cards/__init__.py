"""Character cards: personas as other programs exchange them.

Macros are replaced when a text is sent or shown, never in files or rows, but for a greeting, which was said.
"""
