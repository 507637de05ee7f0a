"""The terminal: the only room with prompt_toolkit and rich.

Everything not written by Chorus passes `core/text/safe_text`, and all output the guard of `screen/guard`.
"""
