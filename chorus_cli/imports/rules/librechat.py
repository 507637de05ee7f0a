"""Conversations that LibreChat exports as JSON: messages in a list, or in a tree of children."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import Kind, Said, assembled
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason
from chorus_cli.log.rules.messages import Status

SOURCE = "librechat"


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of LibreChat."""
    found = values.record(value)
    return "conversationId" in found and any(isinstance(found.get(name), list) for name in ("messages", "messagesTree"))


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation; the export names no live branch, so the branch with the newest message is live."""
    found = values.record(value)
    facts = ForeignConversation(SOURCE, values.identifier(found.get("conversationId")), values.line(found.get("title")))
    keys = values.ContentKeys()
    return assembled(facts, (piece for message in _messages(found) for piece in _said(message, keys)))


def _messages(found: values.Record) -> Iterator[values.Record]:
    """Yield the messages, each before its children."""
    waiting = [*values.records(found.get("messagesTree")), *values.records(found.get("messages"))][::-1]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += values.records(message.get("children"))[::-1]


def _said(message: values.Record, keys: values.ContentKeys) -> Iterator[Said]:
    """Yield the pieces of a message; a failed reply has no words, only the text of the error, which is left out."""
    time, text = values.moment(message.get("createdAt")), values.text(message.get("text"))
    key = values.identifier(message.get("messageId")) or keys.of(values.line(message.get("sender")), str(time), text)
    parent = values.identifier(message.get("parentMessageId")) or None
    said = Said(key, None, "", time, parent=parent, skipped=Reason.EMPTY_REPLY)
    yield said
    if message.get("error") is True:
        return
    parts = values.parts(message.get("content")) or [{"type": "text", "text": text}]
    if message.get("isCreatedByUser") is True:
        words = "\n\n".join(filter(str.strip, map(_text, parts)))
        yield replace(said, kind=Kind.USER, text=words, files=tuple(_files(message)))
        return
    reply = replace(said, kind=Kind.REPLY, model=values.line(message.get("model")) or None, is_more=True)
    yield from (_piece(reply, part, number) for number, part in enumerate(parts))
    status = Status.INTERRUPTED if message.get("unfinished") is True else None
    yield replace(reply, kind=Kind.END, status=status, files=tuple(_files(message)))


def _piece(reply: Said, part: values.Record, number: int) -> Said:
    call = values.record(part.get("tool_call"))
    if not call:
        return replace(reply, text=_text(part), thoughts=values.text(part.get("think")))
    output = call.get("output")
    return replace(
        reply,
        kind=Kind.CALL,
        call=f"{reply.node}/{number}",
        tool=values.line(call.get("name")),
        arguments=call.get("args"),
        result=values.text(output) if isinstance(output, str) else None,
    )


def _text(part: values.Record) -> str:
    """Return the text of a part; in a part of OpenAI's Assistants API, an object holds the text."""
    text = part.get("text") if part.get("type") == "text" else ""
    return values.text(values.record(text).get("value") if isinstance(text, dict) else text)


def _files(message: values.Record) -> Iterator[ForeignFile]:
    """Yield the files; the export has only their names and types."""
    for file in values.records(message.get("files")):
        if name := values.line(file.get("filename")):
            yield ForeignFile(name, values.line(file.get("type")))
