"""This machine: clock, editor, clipboard, shell, event loop and folders."""
