"""What tools did, in the text that a context is edited as."""

from __future__ import annotations

import json

import pytest

from chorus_cli.core.errors import EditFormatError
from chorus_cli.editing.rules.format import parse
from chorus_cli.log.rules.messages import Message
from tests.editing.rules.edit_sheets import (
    ANSWER,
    CALL,
    QUESTION,
    ContextEdit,
    call,
    edited,
    kept,
    matched,
    result,
    said,
    sheet_of,
)


def test_a_call_and_its_result_are_one_block() -> None:
    sheet = sheet_of([], [QUESTION, call(6, "a", 12), result(7, "a", "three\n\nhits", 13), ANSWER])
    assert '[2026-02-12 12:00:12] Frodo (tool): search {"q": "ring"}\n→ three\n\nhits\n\n' in sheet.text
    assert [tuple(row.id for row in entry.rows) for entry in sheet.context] == [(3,), (6, 7), (4,)]


@pytest.mark.parametrize(
    ("log", "sizes"),
    [
        ([call(1, "a"), result(2, "a"), call(3, "b"), result(4, "b")], [2, 2]),
        ([call(1, "a"), call(2, "b"), result(3, "a"), result(4, "b")], [4]),
        ([call(1, "a"), call(2, "b"), result(3, "b"), call(4, "c"), result(5, "c")], [1, 2, 2]),
        ([call(1, "a"), said(2, "stop"), result(3, "a")], [1, 1, 1]),
        ([result(1, "a"), call(2, "b"), result(3, "b")], [1, 2]),
        ([call(1, "a"), result(2, "a"), result(3, "x")], [2, 1]),
    ],
)
def test_calls_side_by_side_are_one_block_and_what_lacks_its_partner_is_alone(
    log: list[Message], sizes: list[int]
) -> None:
    sheet = sheet_of([], log)
    assert [len(entry.rows) for entry in sheet.context] == sizes
    assert edited(sheet) == ContextEdit(kept(*(row.id for row in log)), dropped=(), changed=False)


def test_a_tool_block_can_be_moved_and_deleted() -> None:
    tool = [call(6, "a", 12), result(7, "a", seconds=13)]
    sheet = sheet_of([], [QUESTION, *tool, ANSWER])
    moved = sheet_of([], [QUESTION, ANSWER, *tool]).text
    deleted = sheet_of([], [QUESTION, ANSWER]).text
    brought_out = sheet_of(tool, [QUESTION, ANSWER]).text
    assert matched(parse(moved, "Frodo"), sheet) == ContextEdit(kept(3, 4, 6, 7), dropped=(), changed=True)
    for text in (deleted, brought_out):
        assert matched(parse(text, "Frodo"), sheet) == ContextEdit(kept(3, 4), dropped=(6, 7), changed=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("three", "four"),
        ("search", "find"),
        ("12:00:12", "12:00:13"),
        ("→ three\nhits\n", ""),
        ("There.\n", "There.\n\n[2026-02-12 12:00:12] Frodo (tool): made up\n"),
    ],
)
def test_a_tool_block_cannot_be_changed_or_made_up(old: str, new: str) -> None:
    sheet = sheet_of([], [QUESTION, call(6, "a", 12), result(7, "a", seconds=13), ANSWER])
    with pytest.raises(EditFormatError, match=r"what a tool did cannot be changed or made up") as caught:
        edited(sheet, (old, new))
    line = sheet.text.replace(old, new).split("\n")[caught.value.line - 1]
    assert line.startswith("[2026-02-12 12:00:1")
    assert "Frodo (tool)" in line


@pytest.mark.parametrize(
    ("tool_calls", "shown"),
    [
        (CALL, 'search {"q": "ring"}'),
        (json.dumps([json.loads(CALL)[0]] * 2), 'search {"q": "ring"}\nsearch {"q": "ring"}'),
        (CALL[1:-1], 'search {"q": "ring"}'),
        ('[{"function": {"name": "f", "arguments": "\\ud83d\\ude00 \\ud800"}}]', "f 😀 \ufffd"),
        ('[{"function": {"name": 7}}]', '[{"function": {"name": 7}}]'),
        ("not JSON", "not JSON"),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5_000, "9" * 5_000),
        ("[]", ""),
        (None, ""),
    ],
    ids=range(10),
)
def test_calls_are_shown_by_their_names_whatever_the_log_holds(tool_calls: str | None, shown: str) -> None:
    sheet = sheet_of([], [call(1, "a")._replace(tool_calls=tool_calls)])
    assert sheet.context[0].block.body == shown
    sheet.text.encode()
    assert not edited(sheet).changed


def test_what_is_said_before_a_call_is_shown_with_it() -> None:
    sheet = sheet_of([], [call(1, "a")._replace(content="Let me look.")])
    assert "Frodo (tool): Let me look.\nsearch " in sheet.text
