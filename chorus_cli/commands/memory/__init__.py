"""``/memory`` and ``/remember``: what a persona remembers besides the conversation."""
