"""Character cards: personas as other programs exchange them.

A persona made from a card keeps its JSON in `card.json`, which an export starts from; only such a persona has macros.
Macros are replaced when a text is sent or shown, never in files or rows; a greeting was said, so its row has the
result.
"""
