"""Settings as their user wrote them, with a byte order mark, comments and keys of his own."""

from __future__ import annotations

DATA = '\ufeff// Frodo\r\n{\r\n  "context_hours": 24, // a day\r\n  "mine": [1,],\r\n}\r\n'.encode()
