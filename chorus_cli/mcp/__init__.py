"""The Model Context Protocol: what servers offer Chorus, and what Chorus lets other programs read.

The model may call a server's tools if the user allows it; only the user sends prompts and attaches resources. The
toolbox carries out the calls of all tools, built-in ones too.
Only `serving`, `connections` and `oauth` speak the protocol. Other programs can only read, and cannot see personas that
the user hides.
"""
