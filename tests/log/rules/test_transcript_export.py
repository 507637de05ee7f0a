"""A conversation as Markdown: the words as they were stored, with headings between them."""

from __future__ import annotations

import pytest

from chorus_cli.log.rules.acts import Clear
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.log.rules.operations import Operation
from chorus_cli.log.rules.wording import Export, markdown
from tests.fakes import START

STAMP = f"{START.astimezone():%Y-%m-%d %H:%M:%S}"


def said(content: str, role: Role = Role.USER, status: Status = Status.COMPLETE, calls: str | None = None) -> Message:
    return Message(1, "frodo", 7, 1, role, content, START, tool_calls=calls, status=status)


def body(*entries: Message | Operation) -> str:
    """Return what stands below the head."""
    return markdown(Export("frodo", "Frodo\nBaggins", 7, START, is_whole=True, entries=entries)).split("\n\n", 2)[2]


def test_the_head_says_whose_words_they_are() -> None:
    text = markdown(Export("frodo", "Frodo\nBaggins", 7, START, is_whole=True, entries=(said("Hi"),)))
    assert text.startswith(
        f"# Frodo Baggins\n\nThread #7, everything that was said: 1 message, exported on {STAMP}.\n\n## Human, {STAMP}"
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (said("\n  code?\n\n# no heading of ours\n"), f"## Human, {STAMP}\n\n  code?\n\n# no heading of ours\n"),
        (
            said("Half a", Role.ASSISTANT, Status.INTERRUPTED),
            f"## Frodo Baggins, {STAMP}\n\nHalf a\n\n*[interrupted]*\n",
        ),
        (said("", Role.ASSISTANT, Status.FAILED), f"## Frodo Baggins, {STAMP}\n\n*[failed]*\n"),
        (said("", Role.TOOL_USE, calls="[1]"), f"## Frodo Baggins calls a tool, {STAMP}\n\n```json\n[1]\n```\n"),
        (said("a ```` b", Role.TOOL_RESULT), f"## The tool answers, {STAMP}\n\n`````\na ```` b\n`````\n"),
        (said("", Role.TOOL_RESULT), f"## The tool answers, {STAMP}\n"),
    ],
)
def test_each_message_stands_below_a_heading(message: Message, expected: str) -> None:
    assert body(message) == expected


def test_a_clear_is_a_line_between_messages() -> None:
    clear = Operation(1, Clear(), None, 1, START)
    assert f"One\n\n---\n\n*[CONTEXT_CLEARED] {STAMP}*\n\n## Human" in body(said("One"), clear, said("Two"))
