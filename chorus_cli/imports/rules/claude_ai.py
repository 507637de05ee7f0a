"""Conversations of a Claude.ai data export: messages made of blocks; in newer exports a message names its parent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import Kind, Said, assembled, in_words, texts_of
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped
from chorus_cli.log.rules.messages import Status

SOURCE = "claude.ai"

NEWEST_BRANCH = "The export does not say which branch a conversation ended with: Chorus took the newest one."

_EMPTY = "empty message"
_KINDS = {"human": Kind.USER, "user": Kind.USER, "assistant": Kind.REPLY}
_ENDINGS = {"max_tokens": Status.TRUNCATED, "user_canceled": Status.INTERRUPTED}


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of Claude.ai."""
    return isinstance(values.record(value).get("chat_messages"), list)


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation."""
    found = values.record(value)
    leaf = values.identifier(found.get("current_leaf_message_uuid"))
    said = list(_said(values.items(found.get("chat_messages")), values.line(found.get("model")) or None))
    begun = values.moment(found.get("created_at"))
    facts = ForeignConversation(
        SOURCE, values.identifier(found.get("uuid")), values.line(found.get("name")), created_at=begun
    )
    read = assembled(facts, said, leaf)
    ends = {message.key for message in read.messages} - {message.parent for message in read.messages}
    is_known = any(isinstance(each, Said) and each.node == leaf for each in said)
    return read if is_known or len(ends) == 1 else replace(read, guesses=(NEWEST_BRANCH,))


def _said(messages: Sequence[object], model: str | None) -> Iterator[Said | Skipped]:
    """Yield the pieces of messages; a message without the field for its parent follows the message before it."""
    keys = values.ContentKeys()
    before = ""
    for each in messages:
        message = values.record(each)
        kind = _KINDS.get(values.line(message.get("sender")))
        if kind is None:
            yield Skipped(Reason.BROKEN_MESSAGE)
            continue
        parts = (values.line(message.get(name)) for name in ("sender", "created_at", "text"))
        key = values.identifier(message.get("uuid")) or keys.of(*parts)
        parent = values.identifier(message.get("parent_message_uuid", before)) or None
        before = key
        said = Said(key, None, "", values.moment(message.get("created_at")), parent=parent, skipped=_EMPTY)
        yield said
        if kind is Kind.USER:
            blocks = "\n\n".join(filter(str.strip, map(_words, values.records(message.get("content")))))
            # If the blocks have no words, the text beside them may have some.
            text = "\n\n".join(filter(str.strip, (blocks or values.text(message.get("text")), *_pasted(message))))
            yield replace(said, kind=Kind.USER, text=text, files=tuple(_files(message)))
        else:
            yield from _reply(replace(said, kind=Kind.REPLY, model=model, is_more=True), message)


def _reply(said: Said, message: values.Record) -> Iterator[Said]:
    """Yield the pieces of a reply; a call without a result, or a result without a call, becomes text of the reply.

    Chorus 0.2.0 stored this text in one row. In rows with other keys, the same words would be imported twice.
    """
    blocks = values.records(message.get("content"))
    pieces = [*_pieces(said, blocks)]
    answered = {each.call for each in pieces if each.kind is Kind.RESULT and each.call}
    for each in pieces:
        if each.kind is Kind.REPLY or each.call in answered:
            yield each
            continue
        words = values.json_text(each.arguments) if each.kind is Kind.CALL else each.text
        yield replace(said, text=in_words(each.tool, words))
    if not any(each.kind is not Kind.REPLY or each.text.strip() for each in pieces):
        yield replace(said, text=values.text(message.get("text")))
    status = _ENDINGS.get(values.line(message.get("stop_reason")))
    yield replace(said, kind=Kind.END, status=status, files=tuple(_files(message)))


def _pieces(said: Said, blocks: Sequence[values.Record]) -> Iterator[Said]:
    """Yield texts, thoughts, calls and results; a result that names no call belongs to the last unanswered call."""
    calls: dict[str, str] = {}
    for number, block in enumerate(blocks):
        tool = values.line(block.get("name"))
        began, ended = (values.moment(block.get(name)) for name in ("start_timestamp", "stop_timestamp"))
        match block.get("type"):
            case "tool_use":
                key = f"{said.node}/{number}"
                calls[values.identifier(block.get("id")) or key] = key
                call = replace(said, kind=Kind.CALL, timestamp=began or said.timestamp, call=key)
                yield replace(call, tool=tool, arguments=block.get("input"))
            case "tool_result":
                call_id = values.identifier(block.get("tool_use_id")) or next(reversed(calls), "")
                result = replace(said, kind=Kind.RESULT, text=_words_of_result(block), call=calls.pop(call_id, ""))
                yield replace(result, timestamp=ended or said.timestamp, tool=tool)
            case _:
                yield replace(said, text=_words(block), thoughts=values.text(block.get("thinking")))


def _words(block: values.Record) -> str:
    """Return the words in a block; thoughts, calls and marks of the program have none."""
    name = {"text": "text", "voice_note": "transcript"}.get(values.line(block.get("type")), "")
    return values.text(block.get(name))


def _words_of_result(result: values.Record) -> str:
    parts = values.parts(result.get("content"))
    return "\n".join(text for part in parts for text in texts_of(part, "title", "url", "text"))


def _pasted(message: values.Record) -> Iterator[str]:
    """Yield the large pastes, which the program keeps as attachments without a name."""
    for file in values.records(message.get("attachments")):
        if not values.line(file.get("file_name")):
            yield values.text(file.get("extracted_content"))


def _files(message: values.Record) -> Iterator[ForeignFile]:
    """Yield the named attachments with their texts, and the files, whose bytes the export does not have."""
    for file in values.records(message.get("attachments")):
        if name := values.line(file.get("file_name")):
            text = values.text(file.get("extracted_content"))
            yield ForeignFile(name, "text/plain" if text else "", data=text.encode() if text else None)
    for file in values.records(message.get("files")):
        if name := values.line(file.get("file_name")):
            yield ForeignFile(name)
