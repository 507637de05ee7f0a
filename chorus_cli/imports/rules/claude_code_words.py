"""Messages in the lines of Claude Code: joined replies, calls with their results, and the user's own words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignFile, ForeignMessage
from chorus_cli.imports.rules.tool_rows import Result, call_of, in_words, rows_of_call
from chorus_cli.log.rules.messages import Role, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from chorus_cli.core.json.values import Record

_PROGRAM = "note of the program"
_SUMMARY = "summary of a compaction"
_ERROR = "error of the program"
_SYNTHETIC = "<synthetic>"
# One that does not end reaches to the end of the text, so that no end is looked for again.
_ADDED = tuple(
    re.compile(rf"<{name}>(?:.*?(?P<end></{name}>)\s*|.*)", re.DOTALL)
    for name in ("system-reminder", "ide_opened_file", "ide_selection")
)
_NOT_SAID = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args|contents)|local-command-[a-z]+|bash-[a-z]+|task-notification"
    r"|teammate-message|user-prompt-submit-hook|user-memory-input|new-diagnostics)\b"
    r"|Caveat: The messages below were generated|\[Request interrupted by user)"
)
_MEDIA = ("image", "document")


class _Block(NamedTuple):
    """A block of a reply, the key of the row that it may become, and the time of its line."""

    key: str
    timestamp: datetime | None
    block: Record


@dataclass(slots=True)
class _Reply:
    """The lines of one reply, each with a block or more; ``key`` is the first one's."""

    key: str
    model: str | None
    blocks: list[_Block] = field(default_factory=list)
    is_cut: bool = False


class Words:
    """The messages of a session, by the key of the line in which each begins; ``skipped`` counts the lines without."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self._messages: dict[str, list[ForeignMessage]] = {}
        self._replies: dict[str, _Reply] = {}
        self._calls: set[str] = set()
        self._results: dict[str, Result] = {}
        self._answers: list[tuple[str, str]] = []
        self._queued: set[str] = set()

    def take(self, key: str, line: Record) -> None:
        """Take a line."""
        kind, message = line.get("type"), values.record(line.get("message"))
        if kind == "assistant":
            self._take_reply(key, line, message)
        elif kind == "user":
            self._take_prompt(key, line, message)
        elif kind == "attachment":
            attachment = values.record(line.get("attachment"))
            if attachment.get("type") == "queued_command":
                self._say(key, attachment.get("prompt"), line)

    def take_queued(self, line: Record, before: str | None) -> None:
        """Take the words that the user gave the model while it was at work; the line has no place of its own."""
        if before is not None and line.get("operation") == "remove":
            self._say(before, line.get("content"), line)

    def finish(self) -> None:
        """Make the replies, once all results are known."""
        for reply in self._replies.values():
            self._messages[reply.key] = [*_reply_rows(reply, self._results), *self._messages.get(reply.key, ())]
        for key, call in self._answers:
            if call not in self._calls:
                content, time = self._results[call]
                row = ForeignMessage(f"{key}/result", None, Role.ASSISTANT, in_words("", content), time)
                self._messages.setdefault(key, []).append(row)

    def messages_of(self, key: str) -> tuple[ForeignMessage, ...]:
        """Return the messages that begin in a line."""
        return tuple(self._messages.get(key, ()))

    def _take_reply(self, key: str, line: Record, message: Record) -> None:
        if line.get("isApiErrorMessage") is True or message.get("model") == _SYNTHETIC:
            self.skipped[_ERROR] += 1
            return
        new = _Reply(key, values.line(message.get("model")) or None)
        reply = self._replies.setdefault(values.identifier(message.get("id")) or key, new)
        reply.model = reply.model or new.model
        reply.is_cut = message.get("stop_reason") == "max_tokens"
        time, known = values.moment(line.get("timestamp")), [each.block for each in reply.blocks]
        for number, block in enumerate(_blocks(message)):
            if block not in known:
                reply.blocks.append(_Block(f"{key}/{number}" if number else key, time, block))
            if block.get("type") == "tool_use":
                self._calls.add(values.identifier(block.get("id")))

    def _take_prompt(self, key: str, line: Record, message: Record) -> None:
        blocks = _blocks(message)
        said = [block for block in blocks if block.get("type") != "tool_result"]
        for block in blocks:
            if block.get("type") == "tool_result":
                call = values.identifier(block.get("tool_use_id"))
                self._results[call] = Result(_words_of(block), values.moment(line.get("timestamp")))
                self._answers.append((key, call))
        if line.get("isCompactSummary") is True:
            self.skipped[_SUMMARY] += 1
        elif said and line.get("isMeta") is True:
            self.skipped[_PROGRAM] += 1
        elif said:
            self._say(key, said, line)

    def _say(self, key: str, content: object, line: Record) -> None:
        """Keep words of the user, unless they are the program's."""
        blocks = _blocks({"content": content})
        words = (_without_additions(values.text(block.get("text"))).strip("\n") for block in blocks)
        text = "\n\n".join(piece for piece in words if piece.strip() and not _NOT_SAID.match(piece))
        files = tuple(_files(blocks))
        if not text and not files:
            self.skipped[_PROGRAM] += 1
            return
        time = values.moment(line.get("timestamp"))
        if line.get("type") != "user":
            if text in self._queued:
                return
            self._queued.add(text)
            key_of_row = f"{key}/queued/{len(self._queued)}"
        else:
            key_of_row = key
        row = ForeignMessage(key_of_row, None, Role.USER, text, time, files=files)
        self._messages.setdefault(key, []).append(row)


def _without_additions(text: str) -> str:
    """Return what the user said of a text, without what the program has put into it between marks."""
    for added in _ADDED:
        text = added.sub(lambda found: "" if found["end"] else found[0], text)
    return text


def _blocks(message: Record) -> Sequence[Record]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else values.records(content)


def _reply_rows(reply: _Reply, results: dict[str, Result]) -> Iterator[ForeignMessage]:
    """Yield the rows of a reply: its text, then each call with its result, and text behind it in a row of its own."""
    thoughts = "\n\n".join(filter(str.strip, (values.text(each.block.get("thinking")) for each in reply.blocks)))
    time = reply.blocks[0].timestamp if reply.blocks else None
    blank = ForeignMessage(reply.key, None, Role.ASSISTANT, "", time, reply.model, reasoning=thoughts or None)
    rows: list[ForeignMessage] = []
    for key, time, block in reply.blocks:
        text = values.text(block.get("text")) if block.get("type") == "text" else ""
        if block.get("type") == "tool_use":
            identity = values.identifier(block.get("id"))
            call = call_of(identity or key, block.get("name"), block.get("input"))
            rows += rows_of_call(
                replace(blank, key=key, timestamp=time), call, results.get(identity) if identity else None
            )
        elif text.strip() and rows and rows[-1].role is Role.ASSISTANT:
            # The key is that of the last text: a session that goes on may add to a message imported before.
            rows[-1] = replace(rows[-1], key=key, content=f"{rows[-1].content}\n\n{text}")
        elif text.strip():
            rows.append(replace(blank, key=key, timestamp=time, content=text))
    if not rows and thoughts:
        rows.append(blank)
    if rows and rows[-1].role is Role.ASSISTANT and reply.is_cut:
        rows[-1] = replace(rows[-1], status=Status.TRUNCATED)
    yield from (row if not number else replace(row, reasoning=None) for number, row in enumerate(rows))


def _words_of(result: Record) -> str:
    """Return the text of a result; a picture in it is named."""
    content = result.get("content")
    if isinstance(content, str):
        return values.text(content)
    pieces = (values.text(block.get("text")) or _named(block) for block in values.records(content))
    return "\n".join(filter(None, pieces))


def _named(block: Record) -> str:
    media_type = values.line(values.record(block.get("source")).get("media_type"))
    return f"[{media_type or 'image'}]" if block.get("type") in _MEDIA else ""


def _files(blocks: Sequence[Record]) -> Iterator[ForeignFile]:
    for block in blocks:
        if block.get("type") in _MEDIA:
            source = values.record(block.get("source"))
            media_type = values.line(source.get("media_type"))
            suffix = media_type.rpartition("/")[2]
            name = values.line(block.get("title")) or f"{block['type']}{'.' + suffix if suffix else ''}"
            yield ForeignFile(name, media_type, data=values.decoded(source.get("data")))
