"""The terminal: the only room with prompt_toolkit and rich.

A thread parses and draws a reply, a process lexes the code in the reply, and only the event loop writes to the
terminal. The `Screen` erases temporary rows before it writes a sentence and before Ctrl-Z suspends Chorus.
"""
