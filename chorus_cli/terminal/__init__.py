"""The terminal: the only room with prompt_toolkit and rich.

A thread parses and draws a reply, a process lexes its code, and only the event loop writes to the terminal. The
`Screen` knows what is painted for a while and removes it before a sentence, before Ctrl-Z and before an editor.
"""
