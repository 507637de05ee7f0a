"""Messages as the chat completions API takes them: a list, lines, or an object with ``messages``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from itertools import islice

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import ANOTHER_ZONE, FileFacts, Kind, Said, assembled, words_of, zone_guess
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped, unnamed_file

SOURCE = "messages"

_KINDS = {"user": Kind.USER, "assistant": Kind.REPLY, "tool": Kind.RESULT, "function": Kind.RESULT}
_PROMPTS = ("system", "developer")


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether a file with these first values holds messages."""
    listed = values.items(_listed(first[0])) if first else ()
    message = values.record(listed[0] if listed else None)
    return "content" in message and message.get("role") in (*_KINDS, *_PROMPTS)


def parted(lines: Iterable[object], file: FileFacts) -> Iterator[tuple[Sequence[object], FileFacts]]:
    """Yield each conversation's messages: a list begins a conversation, and a single message continues it."""
    number, messages = 0, list[object]()
    for each in lines:
        listed = values.items(_listed(each))
        if number == 0 or listed != [each]:
            if number:
                yield messages, _numbered(file, number)
            number, messages = number + 1, []
        messages += listed
    yield messages, _numbered(file, number)


def _numbered(file: FileFacts, number: int) -> FileFacts:
    return file if number <= 1 else file._replace(name=f"{file.name} {number}")


def conversation_of(messages: Iterable[object], file: FileFacts) -> ForeignConversation:
    """Read a conversation; its key is made of the name of the file, the first message and the first reply."""
    listed = [*messages]
    said = list(_said(listed, file.zone))
    pieces = [each for each in said if isinstance(each, Said)]
    replies = (each.node for each in pieces if each.kind is Kind.REPLY)
    key = values.ContentKeys().of(file.name, *(each.text for each in pieces[:1]), *islice(replies, 1))
    guesses = (zone_guess("A file of messages", file.zone),) if any(map(_has_no_zone, listed)) else ()
    return assembled(ForeignConversation(SOURCE, key, guesses=guesses), said)


def _listed(value: object) -> object:
    """Return the messages in a value: the value if it is a list, else its field ``messages``, else the value alone."""
    return values.record(value).get("messages", value if isinstance(value, list) else [value])


def _time_of(message: values.Record) -> object:
    return message.get("timestamp") or message.get("created_at")


def _has_no_zone(message: object) -> bool:
    time = _time_of(values.record(message))
    return values.moment(time) != values.moment(time, ANOTHER_ZONE)


def _said(messages: Iterable[object], zone: tzinfo | None) -> Iterator[Said | Skipped]:
    keys = values.ContentKeys()
    for each in messages:
        message = values.record(each)
        role, content = values.line(message.get("role")), message.get("content")
        if role not in _KINDS:
            reason = Reason.SYSTEM_PROMPT if role in _PROMPTS else Reason.BROKEN_MESSAGE
            yield each if isinstance(each, Skipped) else Skipped(reason)
            continue
        time = values.moment(_time_of(message), zone)
        key = keys.of(role, values.json_text(content), values.json_text(message.get("tool_calls")))
        said = Said(key, _KINDS[role], words_of(content, "\n\n"), time)
        if role == "user":
            yield replace(said, files=tuple(_files(values.parts(content))))
        elif role == "assistant":
            reply = replace(said, model=values.line(message.get("model")) or None)
            thoughts = values.text(message.get("reasoning_content")) or values.text(message.get("reasoning"))
            yield replace(reply, thoughts=thoughts)
            yield from _calls(replace(reply, kind=Kind.CALL, text=""), message)
        else:
            call, tool = values.identifier(message.get("tool_call_id")), values.line(message.get("name"))
            yield replace(said, call=call, tool=tool)


def _calls(reply: Said, message: values.Record) -> Iterator[Said]:
    for call in values.records(message.get("tool_calls")):
        function, key = values.record(call.get("function")), values.identifier(call.get("id"))
        tool = values.line(function.get("name"))
        yield replace(reply, call=key, tool=tool, arguments=function.get("arguments"))


def _files(parts: Sequence[values.Record]) -> Iterator[ForeignFile]:
    """Yield the pictures of a message; a picture at a web address is not fetched."""
    for part in parts:
        address = values.record(part.get("image_url")).get("url")
        if address is not None:
            yield unnamed_file("image", *(values.from_data_url(address) or ("", None)))
