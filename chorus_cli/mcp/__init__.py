"""The Model Context Protocol: what servers offer here, and what other programs may read here.

The model may call a server's tools if the user allows it; only the user sends prompts and attaches resources. The
toolbox carries out calls of all tools, the built-in ones too.
Only `serving`, `connections` and `oauth` speak the protocol. Other programs only read, and see no persona that the user
hides.
"""
