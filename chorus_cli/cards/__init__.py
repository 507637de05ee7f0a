"""Character cards: personas as other programs exchange them.

A persona that was made of a card keeps the card's JSON in `card.json`, and an export starts from it. No other persona
has macros. Macros stay in files and memory items, and are replaced when a text is sent or shown. In a greeting they
are replaced before its row is stored.
"""
