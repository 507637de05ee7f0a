"""The examples of the CommonMark specification, and what they need to stand in a stream as they would at once.

The examples are by John MacFarlane, CC BY-SA 4.0; see ``_about`` in ``commonmark_examples.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from chorus_cli.core.text.safe_text import safe_text

_FILE = Path(__file__).with_name("commonmark_examples.json")


def examples() -> list[str]:
    """Return the Markdown of each example as a reply stream would get it, in the order of the specification."""
    return [safe_text(text) for text in json.loads(_FILE.read_text(encoding="utf-8"))["examples"]]


def with_definitions_ahead(text: str) -> str:
    """Return ``text`` with its links defined before it, if one could be used before it is defined there.

    For a link that stands on the screen already cannot be made one by a definition that follows.
    """
    environment: dict[str, Any] = {}
    tokens = MarkdownIt().enable("strikethrough").enable("table").parse(text, environment)
    definitions = environment.get("references", {})
    last = max((definition["map"][0] for definition in definitions.values()), default=0)
    if all(token.map is None or token.map[0] >= last for token in tokens):
        return text
    ahead = (f"[{label}]: <{_source(definition['href'])}>\n" for label, definition in definitions.items())
    return "".join(ahead) + "\n" + text


def _source(address: str) -> str:
    """Return an address as it has to be written to be read as it is."""
    return address.replace("&", "&amp;")
