"""The screen: guarded output, tables, progress."""
