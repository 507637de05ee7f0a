"""Conversations of a Claude.ai data export: messages of blocks, in newer exports with their parents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage, Node, joined
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Role, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chorus_cli.core.json.values import Record

SOURCE = "claude.ai"

NEWEST_BRANCH = "The export does not say which branch a conversation ended with: the newest one was taken."

_BROKEN = "message that cannot be read"
_EMPTY = "empty message"
_ROLES = {"human": Role.USER, "user": Role.USER, "assistant": Role.ASSISTANT}
_ENDINGS = {"max_tokens": Status.TRUNCATED, "user_canceled": Status.INTERRUPTED}


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of Claude.ai."""
    return isinstance(values.record(value).get("chat_messages"), list)


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation.

    Raises:
        ImportFormatError: it has no message that can be read.
    """
    found = values.record(value)
    written = values.items(found.get("chat_messages"))
    messages = [message for message in values.records(written) if _role(message)]
    nodes = list(_nodes(messages, values.line(found.get("model")) or None))
    leaf = values.identifier(found.get("current_leaf_message_uuid"))
    tree = joined(nodes, leaf or None)
    if not tree.messages:
        raise ImportFormatError("conversation without messages")
    is_guessed = tree.branches > 1 and all(node.key != leaf for node in nodes)
    empty = sum(not node.messages for node in nodes)
    skipped = ((_BROKEN, len(written) - len(messages)), (_EMPTY, empty))
    return ForeignConversation(
        SOURCE,
        values.identifier(found.get("uuid")) or tree.messages[0].key,
        values.line(found.get("name")),
        tree.messages,
        tree.live,
        values.moment(found.get("created_at")),
        guesses=(NEWEST_BRANCH,) if is_guessed else (),
        skipped=tuple((reason, count) for reason, count in skipped if count),
    )


def _nodes(messages: Sequence[Record], model: str | None) -> Iterator[Node]:
    """Yield the messages with their parents; one without that field follows the one before it in the file."""
    keys = values.ContentKeys()
    before = ""
    for message in messages:
        parts = (values.line(message.get(name)) for name in ("sender", "created_at", "text"))
        key = values.identifier(message.get("uuid")) or keys.of(*parts)
        parent = values.identifier(message.get("parent_message_uuid", before))
        yield Node(key, parent or None, tuple(_rows(key, message, model)))
        before = key


def _role(message: Record) -> Role | None:
    sender = message.get("sender")
    return _ROLES.get(sender) if isinstance(sender, str) else None


def _rows(key: str, message: Record, model: str | None) -> list[ForeignMessage]:
    time = values.moment(message.get("created_at"))
    first = ForeignMessage(key, None, _role(message) or Role.USER, "", time, files=tuple(_files(message)))
    blocks = values.records(message.get("content"))
    if first.role is Role.USER:
        words = [_text(message, blocks), *_pasted(message)]
        text = "\n\n".join(filter(str.strip, words))
        return [replace(first, content=text)] if text or first.files else []
    rows = list(_reply(first, blocks)) or [replace(first, content=_text(message, blocks))]
    thoughts = "\n\n".join(filter(str.strip, (values.text(block.get("thinking")) for block in blocks)))
    ending = message.get("stop_reason")
    rows[0] = replace(rows[0], reasoning=thoughts or None)
    if rows[-1].role is Role.ASSISTANT and isinstance(ending, str):
        rows[-1] = replace(rows[-1], status=_ENDINGS.get(ending))
    named = enumerate(replace(row, model=model) for row in rows)
    is_empty = len(rows) == 1 and not (rows[0].content.strip() or rows[0].files or thoughts)
    return [] if is_empty else [replace(row, key=f"{key}/{number}" if number else key) for number, row in named]


def _text(message: Record, blocks: Sequence[Record]) -> str:
    """Return the words of a message: the blocks', or where those have none the text beside them."""
    pieces = filter(str.strip, map(_in_words, blocks))
    return "\n\n".join(pieces) or values.text(message.get("text"))


def _reply(first: ForeignMessage, blocks: Sequence[Record]) -> Iterator[ForeignMessage]:
    """Yield the rows of a reply: text, the calls that have a result, each with it, and more text."""
    results = _results(blocks)
    paired = {id(result) for result in results.values()}
    pieces: list[str] = []
    for number, block in enumerate(blocks):
        if id(block) in results:
            if pieces:
                yield replace(first, content="\n\n".join(pieces), files=())
            pieces = []
            yield from _call(first, f"{first.key}/{number}", block, results[id(block)])
        elif id(block) not in paired:
            pieces += filter(str.strip, (_in_words(block),))
    if pieces:
        yield replace(first, content="\n\n".join(pieces))


def _results(blocks: Sequence[Record]) -> dict[int, Record]:
    """Return the results of calls, by the identity of the call; one without an id belongs to the call before it."""
    found: dict[int, Record] = {}
    unanswered: dict[str, Record] = {}
    for number, block in enumerate(blocks):
        if block.get("type") == "tool_use":
            unanswered[values.identifier(block.get("id")) or f"#{number}"] = block
        elif block.get("type") == "tool_result":
            call = unanswered.pop(values.identifier(block.get("tool_use_id")) or next(reversed(unanswered), ""), None)
            if call is not None:
                found[id(call)] = block
    return found


def _call(first: ForeignMessage, key: str, call: Record, result: Record) -> Iterator[ForeignMessage]:
    began = values.moment(call.get("start_timestamp")) or first.timestamp
    ended = values.moment(result.get("stop_timestamp")) or began
    written = ToolCall(key, values.line(call.get("name")) or "tool", values.json_text(call.get("input"))).as_json
    use = replace(first, role=Role.TOOL_USE, timestamp=began, tool_calls=written, tool_call_id=key, files=())
    yield use
    yield replace(use, role=Role.TOOL_RESULT, content=_words_of_result(result), timestamp=ended, tool_calls=None)


def _in_words(block: Record) -> str:
    """Return a block as text; thoughts and marks of the program are none."""
    match block.get("type"):
        case "text":
            return values.text(block.get("text"))
        case "voice_note":
            return values.text(block.get("transcript"))
        case "tool_use":
            return f"[{values.line(block.get('name')) or 'tool'}]\n{values.json_text(block.get('input'))}"
        case "tool_result":
            return f"[{values.line(block.get('name')) or 'tool'}]\n{_words_of_result(block)}"
    return ""


def _words_of_result(result: Record) -> str:
    content = result.get("content")
    if isinstance(content, str):
        return values.text(content)
    pieces = (_words_of_part(part) for part in values.records(content))
    return "\n".join(filter(None, pieces))


def _words_of_part(part: Record) -> str:
    names = ("title", "url", "text")
    return "\n".join(filter(None, (values.text(part.get(name)) for name in names)))


def _pasted(message: Record) -> Iterator[str]:
    """Yield the large pastes, which the program keeps as attachments without a name."""
    for file in values.records(message.get("attachments")):
        if not values.line(file.get("file_name")):
            yield values.text(file.get("extracted_content"))


def _files(message: Record) -> Iterator[ForeignFile]:
    """Yield the named attachments, of which the export has the text alone, and the files, of which it has the name."""
    for file in values.records(message.get("attachments")):
        if name := values.line(file.get("file_name")):
            text = values.text(file.get("extracted_content"))
            yield ForeignFile(name, "text/plain" if text else "", data=text.encode() if text else None)
    for file in values.records(message.get("files")):
        if name := values.line(file.get("file_name")):
            yield ForeignFile(name)
