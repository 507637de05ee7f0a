"""Character cards of every version, as the specifications describe them, and the files that hold them."""

from __future__ import annotations

import base64
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from copy import deepcopy
from io import BytesIO
from typing import Any

SIGNATURE = b"\x89PNG\r\n\x1a\n"

LAMP, ANNA = "The lamp was made in {{char}}'s youth.", "The Anna sank with its gold."
FIRST: dict[str, Any] = {
    "name": "Mira",
    "description": "{{char}} keeps the lighthouse.",
    "personality": "dry, watchful",
    "scenario": "A storm keeps {{user}} at the lighthouse.",
    "first_mes": "*{{char}} looks up.* You are wet, {{User}}.",
    "mes_example": "<START>\n{{user}}: Is it far?\n{{char}}: Far enough.\n<START>\n<USER>: Tea?\n<BOT>: Always.",
}


def entry(content: str, *keys: str, **more: object) -> dict[str, Any]:
    return {"keys": [*keys], "content": content, "extensions": {}, "enabled": True, **more}


SECOND: dict[str, Any] = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        **FIRST,
        "creator_notes": "Best with patience.",
        "system_prompt": "{{original}} Speak little.",
        "post_history_instructions": "{{original}}Stay in the storm.",
        "alternate_greetings": ["Who goes there, {{user}}?"],
        "character_book": {
            "name": "Coast",
            "extensions": {"depth": 4},
            "entries": [
                entry(LAMP, "Lamp", "lens", extensions={"probability": 80}, insertion_order=20),
                entry(ANNA, "wreck", secondary_keys=["gold", "silver"], selective=True, insertion_order=10),
                entry("It is 1890.", constant=True, insertion_order=5),
                entry("There is none.", "sea serpent", enabled=False),
            ],
        },
        "tags": ["sea"],
        "creator": "somebody",
        "character_version": "1.1",
        "extensions": {"depth_prompt": {"depth": 4, "prompt": ""}, "unknown/key": [1, 2.5, None]},
    },
}

THIRD: dict[str, Any] = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {
        **SECOND["data"],
        "nickname": "Mi",
        "assets": [{"type": "icon", "uri": "embeded://assets/icon/main.png", "name": "main", "ext": "png"}],
        "creator_notes_multilingual": {"en": "Patience, please.", "de": "Geduld, bitte."},
        "source": ["an id"],
        "group_only_greetings": ["All hands!"],
        "creation_date": 1700000000,
        "character_book": {
            "extensions": {},
            "entries": [
                entry("@@depth 4\n@@additional_keys horn\nThe fog horn is hoarse.", "fog", use_regex=False),
                entry("Gulls are thieves.", "/gull.*/", use_regex=True),
                entry("@@dont_activate\nCrabs.", "crab"),
                entry("@@activate\nThe tide turns at six.", "tide"),
            ],
        },
    },
}


def card(version: int, **changes: object) -> dict[str, Any]:
    made = deepcopy({1: FIRST, 2: SECOND, 3: THIRD}[version])
    (made["data"] if version > 1 else made).update(changes)
    return made


def chunk(kind: bytes, content: bytes, crc: int | None = None) -> bytes:
    checksum = zlib.crc32(kind + content) if crc is None else crc
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def text_chunk(keyword: str, document: object) -> bytes:
    return chunk(b"tEXt", keyword.encode() + b"\0" + base64.b64encode(json.dumps(document).encode()))


def picture(*chunks: bytes) -> bytes:
    """Return a picture of a single white dot with these chunks before its end."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0\xff")), *chunks, chunk(b"IEND", b""))
    return SIGNATURE + b"".join(parts)


def archive(entries: Mapping[str, bytes]) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return written.getvalue()
