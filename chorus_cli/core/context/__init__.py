"""The context: the view, its budget, and the request made of it."""
