"""Messages with role and content: as a list, as lines and within an object."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.plain_messages import conversation_of
from tests.imports.rules.exports import found_in, live, said

PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(b'PNG').decode()}"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "A cup?",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "t1", "content": "a cup"},
    {"role": "assistant", "content": "A cup.", "model": "gpt-4o"},
]
LINES = "\n".join(map(json.dumps, MESSAGES))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(MESSAGES),
        json.dumps(MESSAGES, indent=2),
        LINES,
        LINES + "\n",
        json.dumps({"model": "gpt-4o", "messages": MESSAGES}),
        json.dumps({"messages": MESSAGES}, indent=4),
        json.dumps({"messages": MESSAGES}) + "\n",
        LINES.replace("\n", ",\n").join(('{"messages": [\n', "\n]}")),
    ],
)
def test_messages_are_read_in_every_form(tmp_path: Path, text: str) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(text, encoding="utf-8")
    ((found,), _) = found_in(path)
    assert (found.source, found.title, dict(found.skipped)) == ("messages", "What is it?", {"system prompt": 1})
    question, call, result, reply = live(found)
    assert (question.files[0].data, call.reasoning, call.tool_call_id) == (b"PNG", "A cup?", "t1")
    assert (result.content, result.tool_call_id, reply.content, reply.model) == ("a cup", "t1", "A cup.", "gpt-4o")


def test_a_file_that_grows_keeps_its_keys() -> None:
    before = conversation_of(MESSAGES[:3], FileFacts("talk"))
    after = conversation_of(MESSAGES, FileFacts("talk"))
    assert (after.key, after.messages[0].key) == (before.key, before.messages[0].key)
    assert conversation_of(MESSAGES, FileFacts("other")).key != after.key


def test_each_line_may_have_a_conversation_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    lines = [{"messages": MESSAGES}, {"messages": MESSAGES}, {"messages": []}, MESSAGES[:2], MESSAGES[4]]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    ((first, second, last), skipped) = found_in(path)
    assert skipped == ["conversation without messages"]
    assert [len(said(found)) for found in (first, second, last)] == [4, 4, 2]
    assert len({first.key, second.key, last.key}) == 3
    assert first.key == conversation_of(MESSAGES, FileFacts("talk")).key


@pytest.mark.parametrize("text", ['[{"role": "user"}]', '{"role": "king", "content": "x"}\n', "[]\n", '[["role"]]\n'])
def test_other_lists_are_of_no_known_format(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(ImportFormatError):
        found_in(tmp_path / "a.json")
