"""Character cards: personas as other programs exchange them."""
