"""The terminal: the only package that imports prompt_toolkit and rich.

A worker thread parses and draws a reply, a separate process lexes the code blocks, and only the event loop writes to
the terminal. The `Screen` erases temporary rows before it writes a sentence and before Ctrl-Z suspends Chorus.
"""
