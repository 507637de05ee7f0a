"""The log and its journal: undo, search, export, transcript."""
