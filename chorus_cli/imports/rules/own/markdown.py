"""Our own Markdown: front matter for the conversation, and a comment above each message that holds its facts.

What a model thought before a message is a quotation above its words, below a line that says for how long; the facts say
that it is there, and older exports hold it themselves. A line of a message that would be read as such a comment is
written with a backslash before it. Control characters are written as references, in messages whose facts say so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.text.quotations import quotation, without_quotation
from chorus_cli.core.text.references import has_controls, with_references, without_references
from chorus_cli.imports.rules.own import json_lines
from chorus_cli.log.rules.messages import UNMEASURED, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage

BEGINNING = f"---\n{json_lines.MARK}:"
ATTACHMENTS = "attachments"
"""The folder of the attachments, beside the files of the conversations."""

_COMMENT = re.compile(r"^<!-- message (\{.*\}) -->$", re.MULTILINE)
_LIKE_A_COMMENT = re.compile(r"^(\\*<!-- message )", re.MULTILINE)
_WRITTEN_WITH_A_BACKSLASH = re.compile(r"^\\(\\*<!-- message )", re.MULTILINE)
_ESCAPED, _THOUGHTS, _PARTS = "escaped", "reasoning", "thought_parts"
_LINES_ABOVE_THOUGHTS = 2
_SPEAKERS = {
    Role.USER: "Human",
    Role.ASSISTANT: "Assistant",
    Role.TOOL_USE: "A tool is called",
    Role.TOOL_RESULT: "The tool answers",
}


def as_markdown(conversation: ForeignConversation) -> str:
    """Write a conversation."""
    live = frozenset(conversation.live)
    facts = "".join(f"{name}: {_json(value)}\n" for name, value in json_lines.header(conversation).items())
    title = with_references(" ".join(conversation.title.split()))
    blocks = (_block(message, is_live=message.key in live) for message in conversation.messages)
    return "\n".join([f"---\n{facts}---\n", *([f"# {title}\n"] if title else []), *blocks])


def conversation_in(text: str) -> ForeignConversation:
    """Read a conversation back.

    Raises:
        ImportFormatError: the front matter is not whole, or of a newer version.
    """
    head, found, _ = text.removeprefix("---\n").partition("\n---\n")
    if not found:
        raise ImportFormatError("Its front matter has no end.")
    facts = dict(_fact(line) for line in head.split("\n"))
    return json_lines.conversation_of(facts, _messages(text))


def _block(message: ForeignMessage, *, is_live: bool) -> str:
    facts = json_lines.fields(message, is_live=is_live)
    for name in ("content", _PARTS):
        facts.pop(name, None)
    at = f", {message.timestamp:%Y-%m-%d %H:%M:%S} UTC" if message.timestamp else ""
    aside = "" if is_live else " (on another branch)"
    links = [f"[{_label(file.name)}]({ATTACHMENTS}/{file.entry})" for file in message.files]
    content, thoughts = message.content, message.reasoning or ""
    if has_controls(content) or has_controls(thoughts):
        facts[_ESCAPED], content, thoughts = True, with_references(content), with_references(thoughts)
    above = ["\n".join(links)] if links else []
    if message.reasoning is not None:
        facts[_THOUGHTS] = True
        above.append(quotation(f"*{(message.thought or UNMEASURED).words}*\n\n{thoughts}"))
    content = _LIKE_A_COMMENT.sub(r"\\\1", content)
    parts = [f"## {_SPEAKERS[message.role]}{at}{aside}", *above, content]
    # A comment ends at the first sign that is greater.
    written = _json(facts).replace(">", "\\u003e")
    return f"<!-- message {written} -->\n" + "\n\n".join(parts) + "\n"


def _messages(text: str) -> Iterator[object]:
    comments = [*_COMMENT.finditer(text)]
    ends = [each.start() - 1 for each in comments[1:]] + [len(text)]
    for comment, end in zip(comments, ends, strict=False):
        facts = _value(comment[1])
        body = text[comment.end() + 1 : end].removesuffix("\n")
        yield facts | _words(facts, body) if isinstance(facts, dict) else None


def _words(facts: Mapping[str, object], body: str) -> dict[str, str]:
    """Return the words of a message, and the thoughts before it if its facts say that they are there."""
    _, _, content = body.partition("\n\n")
    if facts.get("files"):
        _, _, content = content.partition("\n\n")
    found: dict[str, str] = {}
    if facts.get(_THOUGHTS) is True and content.startswith(">"):
        block, _, content = content.partition("\n\n")
        found[_THOUGHTS] = "\n".join(without_quotation(block).split("\n")[_LINES_ABOVE_THOUGHTS:])
    found["content"] = _WRITTEN_WITH_A_BACKSLASH.sub(r"\1", content)
    return {name: without_references(each) for name, each in found.items()} if facts.get(_ESCAPED) is True else found


def _label(name: str) -> str:
    return with_references(" ".join(name.split())).replace("[", "(").replace("]", ")")


def _fact(line: str) -> tuple[str, object]:
    name, _, value = line.partition(":")
    return name.strip(), _value(value.strip())


def _json(value: object) -> str:
    return json_lines.written(value)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
