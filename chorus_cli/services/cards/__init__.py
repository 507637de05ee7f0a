"""Character cards: personas made of them, and written as them."""
