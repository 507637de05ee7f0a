"""Character cards: personas as other programs exchange them.

A persona that was made from a card keeps the card's JSON in `card.json`, and an export starts from this file. Macros
work only in such a persona. They stay in its files and memory items, and are replaced when a text is sent or shown. In
a greeting they are replaced before the greeting is stored.
"""
