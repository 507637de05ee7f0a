"""The machine: clock, folders, editor, clipboard, bug reports."""
