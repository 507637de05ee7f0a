"""The log and its journal: messages, operations, and texts made of them."""
