"""The built-in tools: what a model may call, offered to it and carried out."""
