"""aider's history of chats: Markdown with the user's words as headings and the program's notes as quotations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import FileFacts, Kind, Said, zone_guess
from chorus_cli.imports.rules.conversation import ForeignConversation, Reason, Skipped

SOURCE = "aider"

_STARTED = re.compile(r"^# aider chat started at (\d[\d :-]{9,30})$", re.MULTILINE)
_MODEL = re.compile(r"^> (?:Main model|Models?): (\S{1,200})", re.MULTILINE)
_FENCES = ("```", "~~~")
_SAID, _END = "####", "> Tokens: "


def conversations_of(text: str, file: FileFacts) -> Iterator[tuple[ForeignConversation, list[Said | Skipped]]]:
    """Yield the chats; the only time in a chat is in the line that begins it."""
    keys = values.ContentKeys()
    _, *parts = _STARTED.split(text)
    for started, body in zip(parts[::2], parts[1::2], strict=True):
        said = list(_said(started, body, file))
        first = next((each.text for each in said if isinstance(each, Said)), "")
        begun, guesses = values.moment(started, file.zone), (zone_guess(SOURCE, file.zone),)
        yield ForeignConversation(SOURCE, keys.of(started, first), created_at=begun, guesses=guesses), said


def _said(started: str, body: str, file: FileFacts) -> Iterator[Said | Skipped]:
    """Yield the messages; the first one has the time of the chat, the others have none."""
    keys = values.ContentKeys()
    time, model = values.moment(started, file.zone), _MODEL.search(body)
    for kind, group in groupby(_lines(body), key=lambda line: line[0]):
        text = "\n".join(line for _, line in group).strip("\n")
        if kind is None:
            yield Skipped(Reason.NOTE)
        elif text.strip():
            named = model[1] if model and kind is Kind.REPLY else None
            yield Said(keys.of(kind.name, text), kind, values.text(text), time, named)
            time = None


def _lines(body: str) -> Iterator[tuple[Kind | None, str]]:
    """Yield each line with its author, ``None`` for the program; every line of code belongs to the reply."""
    is_code = False
    for line in body.split("\n"):
        # The count of tokens ends a reply, even a reply that was cut off within code.
        is_code = (is_code ^ line.lstrip().startswith(_FENCES)) and not line.startswith(_END)
        if line.startswith(_SAID) and not is_code:
            yield Kind.USER, line.removeprefix(_SAID).strip()
        elif line.startswith(">") and not is_code:
            yield None, line
        else:
            yield Kind.REPLY, line if is_code else line.rstrip()
