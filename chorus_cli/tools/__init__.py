"""The built-in tools, which a model may call; they see only the rows of the caller's persona."""
