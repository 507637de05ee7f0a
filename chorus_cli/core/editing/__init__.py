"""The context as a text to edit, and the way back."""
