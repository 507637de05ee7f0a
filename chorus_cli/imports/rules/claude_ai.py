"""Conversations of a Claude.ai data export: messages of blocks; in newer exports a message names its parent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import Kind, Said, assembled, in_words
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Skipped
from chorus_cli.log.rules.messages import Status

SOURCE = "claude.ai"

NEWEST_BRANCH = "The export does not say which branch a conversation ended with: Chorus took the newest one."

_BROKEN = "message that cannot be read"
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
    """Yield the pieces of messages; a message without a field for its parent follows the previous message."""
    keys = values.ContentKeys()
    before = ""
    for each in messages:
        message = values.record(each)
        kind = _KINDS.get(values.line(message.get("sender")))
        if kind is None:
            yield Skipped(_BROKEN)
            continue
        parts = (values.line(message.get(name)) for name in ("sender", "created_at", "text"))
        key = values.identifier(message.get("uuid")) or keys.of(*parts)
        parent = values.identifier(message.get("parent_message_uuid", before)) or None
        before = key
        said = Said(key, None, "", values.moment(message.get("created_at")), parent=parent, skipped=_EMPTY)
        yield said
        if kind is Kind.USER:
            blocks = "\n\n".join(filter(str.strip, map(_in_words, values.records(message.get("content")))))
            # If the blocks have no words, the text beside them may have some.
            text = "\n\n".join(filter(str.strip, (blocks or values.text(message.get("text")), *_pasted(message))))
            yield replace(said, kind=Kind.USER, text=text, files=tuple(_files(message)))
        else:
            yield from _reply(replace(said, kind=Kind.REPLY, model=model, is_more=True), message)


def _reply(said: Said, message: values.Record) -> Iterator[Said]:
    """Yield the pieces of a reply: text, thoughts, and calls with results; a call without a result becomes text."""
    blocks = values.records(message.get("content"))
    results = _results(blocks)
    paired = {id(result) for result in results.values()}
    for number, block in enumerate(blocks):
        if id(block) in results:
            result = results[id(block)]
            began = values.moment(block.get("start_timestamp")) or said.timestamp
            tool, call = values.line(block.get("name")), replace(said, kind=Kind.CALL, call=f"{said.node}/{number}")
            call = replace(call, result=_words_of_result(result), ended=values.moment(result.get("stop_timestamp")))
            yield replace(call, timestamp=began, tool=tool, arguments=block.get("input"))
        elif id(block) not in paired:
            yield replace(said, text=_in_words(block), thoughts=values.text(block.get("thinking")))
    if not results and not any(_in_words(block).strip() for block in blocks):
        yield replace(said, text=values.text(message.get("text")))
    status = _ENDINGS.get(values.line(message.get("stop_reason")))
    yield replace(said, kind=Kind.END, status=status, files=tuple(_files(message)))


def _results(blocks: Sequence[values.Record]) -> dict[int, values.Record]:
    """Return results by the ``id()`` of the call's block; a result that names no call belongs to the last open call."""
    found: dict[int, values.Record] = {}
    unanswered: dict[str, values.Record] = {}
    for number, block in enumerate(blocks):
        if block.get("type") == "tool_use":
            unanswered[values.identifier(block.get("id")) or f"#{number}"] = block
        elif block.get("type") == "tool_result":
            call = unanswered.pop(values.identifier(block.get("tool_use_id")) or next(reversed(unanswered), ""), None)
            if call is not None:
                found[id(call)] = block
    return found


def _in_words(block: values.Record) -> str:
    """Return a block as text; for thoughts and marks of the program the text is empty."""
    match block.get("type"):
        case "text":
            return values.text(block.get("text"))
        case "voice_note":
            return values.text(block.get("transcript"))
        case "tool_use":
            return in_words(values.line(block.get("name")), values.json_text(block.get("input")))
        case "tool_result":
            return in_words(values.line(block.get("name")), _words_of_result(block))
    return ""


def _words_of_result(result: values.Record) -> str:
    names = ("title", "url", "text")
    pieces = (values.text(part.get(name)) for part in values.parts(result.get("content")) for name in names)
    return "\n".join(filter(None, pieces))


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
