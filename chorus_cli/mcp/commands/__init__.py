"""``/mcp`` and ``/tools``."""
