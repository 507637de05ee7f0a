"""Chats of SillyTavern: one message in each line; replies have alternatives ("swipes")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import ANOTHER_ZONE, FileFacts, Kind, Said, assembled, zone_guess
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped

SOURCE = "sillytavern"

_UNNAMED = frozenset({"", "unused"})
# The forms of times, without their blanks.
_FORMS = (
    *("%B%d,%Y%I:%M%p", "%b%d,%Y%I:%M%p"),
    *("%Y-%m-%d@%Hh%Mm", "%Y-%m-%d@%Hh%Mm%Ss", "%Y-%m-%d@%Hh%Mm%Ss%fms"),
)
# ``%f`` would read 7 ms as 700 ms: it takes the digits as a decimal fraction of a second.
_SHORT_MILLISECONDS = re.compile(r"(?<=s)\d{1,2}(?=ms$)", re.ASCII)
_NAME = re.compile(r"\{\{(?:char|user)\}\}|<(?:char|bot|user)>", re.IGNORECASE)


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether the first value of a file is the header of a chat."""
    found = values.record(next(iter(first), None))
    return "chat_metadata" in found or ("user_name" in found and "character_name" in found)


def conversation_of(chat: Iterable[object], file: FileFacts) -> ForeignConversation:
    """Read a chat from its lines; the first line is the header."""
    header, *lines = [*chat] or [None]
    name, zone = file
    messages = [line for line in values.records(lines) if "mes" in line or "swipes" in line]
    left = [line for line in lines if isinstance(line, Skipped)]
    left += [Skipped(Reason.BROKEN_LINE)] * (len(lines) - len(messages) - len(left))
    reader = _Reader(values.record(header), messages, zone)
    said = list(reader.said())
    created = values.record(header).get("create_date")
    facts = ForeignConversation(
        SOURCE,
        values.ContentKeys().of(reader.character, values.identifier(created), name),
        values.line(name) or reader.character,
        created_at=moment(created, zone),
        guesses=(zone_guess("SillyTavern", zone),) if reader.is_zone_guessed else (),
        character="" if reader.is_group else reader.character,
    )
    read = assembled(facts, [*said, *left], reader.leaf)
    return read if reader.leaf else replace(read, live=())


def moment(value: object, zone: tzinfo | None) -> datetime | None:
    """Read a time in any form that SillyTavern has written; a time without an offset is in ``zone``."""
    written = "".join(value.split()) if isinstance(value, str) else ""
    written = _SHORT_MILLISECONDS.sub(lambda found: found[0].zfill(3), written)
    for form in _FORMS:
        with suppress(ValueError):
            return values.moment(datetime.strptime(written, form).replace(tzinfo=zone).isoformat(), zone)
    return values.moment(value, zone)


class _Reader:
    """Reads a chat. ``leaf`` is the newest message that is not hidden.

    A message's time without a zone sets ``is_zone_guessed``. In a group the reader puts the speaker's name before each
    reply; in other chats only before the text of somebody who is neither the user nor the character.
    """

    def __init__(self, header: values.Record, lines: Sequence[values.Record], zone: tzinfo | None) -> None:
        self.leaf: str | None = None
        self.is_zone_guessed = False
        self._lines = lines
        self._zone = zone
        self._keys = values.ContentKeys()
        speakers = Counter(values.line(line.get("name")) for line in lines if _is_of_character(line))
        users = Counter(values.line(line.get("name")) for line in lines if line.get("is_user") is True)
        self.character = _named(header.get("character_name"), speakers)
        self._user = _named(header.get("user_name"), users)
        self.is_group = len(speakers.keys() - _UNNAMED) > 1
        self._unnamed = {""} if self.is_group else {"", self.character, *speakers}

    def said(self) -> Iterator[Said]:
        """Yield the messages with their alternatives; a message hidden from the model is a branch of its own."""
        for line in self._lines:
            *others, chosen = self._alternatives(line)
            is_hidden = line.get("is_system") is True
            for each in (*others, replace(chosen, is_hidden=is_hidden)):
                yield replace(each, parent=self.leaf)
            if not is_hidden:
                self.leaf = chosen.node

    def _alternatives(self, line: values.Record) -> Iterator[Said]:
        """Yield the other versions of a message, then the chosen one."""
        swipes = values.items(line.get("swipes"))
        facts = values.items(line.get("swipe_info"))
        at = line.get("swipe_id")
        chosen = at if isinstance(at, int) and 0 <= at < len(swipes) else None
        if chosen is not None:
            for number, text in enumerate(swipes):
                if number != chosen:
                    yield self._message(line, text, values.record(facts[number] if number < len(facts) else None))
        yield self._message(line, line["mes"] if "mes" in line else swipes[chosen or 0] if swipes else "", line)

    def _message(self, line: values.Record, text: object, facts: values.Record) -> Said:
        """Return a version of a message with its own model and time; a missing time is taken from the message."""
        is_user = line.get("is_user") is True
        name = values.line(line.get("name"))
        content = values.text(text)
        written = facts.get("send_date") or line.get("send_date")
        key = self._keys.of(name, values.identifier(written), content)
        extra = values.record(facts.get("extra"))
        if not is_user:
            user, character = self._user or "you", name or self.character
            content = _NAME.sub(lambda found: user if "user" in found[0].lower() else character, content)
            content = f"{name}: {content}" if name not in self._unnamed and content else content
        self.is_zone_guessed = self.is_zone_guessed or moment(written, UTC) != moment(written, ANOTHER_ZONE)
        said = Said(key, Kind.USER, content, moment(written, self._zone), files=tuple(_files(extra)))
        if is_user:
            return said
        model, thoughts = values.line(extra.get("model")) or None, extra.get("reasoning") if content.strip() else ""
        return replace(said, kind=Kind.REPLY, model=model, thoughts=values.text(thoughts))


def _is_of_character(line: values.Record) -> bool:
    """Return whether a line is a character's: neither the user's, nor hidden from the model, nor a narrator's."""
    is_narrator = values.record(line.get("extra")).get("type") == "narrator"
    return line.get("is_user") is not True and line.get("is_system") is not True and not is_narrator


def _named(written: object, names: Counter[str]) -> str:
    """Return the name in the header, or the most frequent name in the messages: newer headers have no name."""
    name = values.line(written)
    found = (each for each, _ in names.most_common() if each not in _UNNAMED)
    return name if name.lower() not in _UNNAMED else next(found, "")


def _files(extra: values.Record) -> Iterator[ForeignFile]:
    listed = [extra, *values.records([extra.get("file")]), *values.records(extra.get("files"))]
    for file in listed:
        address = values.line(file.get("image")) or values.line(file.get("url"))
        name = values.line(file.get("name")) or address.rpartition("/")[2]
        if address and name:
            yield ForeignFile(name)
