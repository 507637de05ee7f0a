"""Small files, each read as a whole: aider's history, messages with role and content, and LibreChat's exports."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.rules import librechat, plain_messages
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.log.rules.messages import Status
from tests.imports.rules.exports import found_in, live, said

HISTORY = """
# aider chat started at 2024-07-12 14:30:00

> Aider v0.45.1  \n> Main model: gpt-4o with diff edit format, infinite output  \n> Added hello.py to the chat.  \n
#### Say hello  \n#### in two lines.  \n
Of course:

hello.py
```python
<<<<<<< SEARCH
=======
# aider is not here
#### nor here
> or here
>>>>>>> REPLACE
```

Done.

> Tokens: 2.1k sent, 84 received.  \n> Applied edit to hello.py  \n
#### /tokens  \n
> Approximate context window usage  \n
# aider chat started at 2024-07-13 09:00:00

> Aider v0.45.1  \n
#### Cut off  \n
```python
half

> Tokens: 1k sent, 3 received.  \n
#### Again  \n
Yes.

# aider chat started at 2024-07-14 09:00:00

> Aider v0.45.1  \n"""


def read(path: Path, text: str) -> tuple[list[ForeignConversation], list[str]]:
    path.write_text(text, encoding="utf-8")
    return found_in(path, ZoneInfo("Europe/Berlin"))


def test_each_chat_is_a_conversation_of_what_was_said(tmp_path: Path) -> None:
    ((first, second), skipped) = read(tmp_path / ".aider.chat.history.md", HISTORY)
    assert skipped == ["conversation without messages"]
    question, reply, command = live(first)
    assert (question.content, command.content) == ("Say hello\nin two lines.", "/tokens")
    assert reply.content.startswith("Of course:\n\nhello.py\n```python\n<<<<<<< SEARCH")
    assert "#### nor here\n> or here\n>>>>>>> REPLACE\n```\n\nDone." in reply.content
    assert (reply.model, question.timestamp) == ("gpt-4o", datetime(2024, 7, 12, 12, 30, tzinfo=UTC))
    assert (first.created_at, dict(first.skipped)) == (question.timestamp, {"note of the program": 3})
    assert first.guesses[0].startswith("aider writes times without a zone: Chorus read them in the zone Europe/Berlin.")
    cut, again = ("assistant", "```python\nhalf"), ("user", "Again")
    assert said(second) == [("user", "Cut off"), cut, again, ("assistant", "Yes.")]


def test_a_chat_that_goes_on_keeps_its_keys(tmp_path: Path) -> None:
    cut = HISTORY.index("#### /tokens")
    before, after = (read(tmp_path / "a.md", text)[0][0] for text in (HISTORY[:cut], HISTORY))
    assert after.key == before.key
    assert [each.key for each in after.messages][:2] == [each.key for each in before.messages]


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
    ((found,), _) = read(tmp_path / "talk.txt", text)
    assert (found.source, found.title, dict(found.skipped)) == ("messages", "What is it?", {"system prompt": 1})
    question, call, result, reply = live(found)
    assert (question.files[0].data, call.reasoning, call.tool_call_id) == (b"PNG", "A cup?", "t1")
    assert (result.content, result.tool_call_id, reply.content, reply.model) == ("a cup", "t1", "A cup.", "gpt-4o")


def test_a_file_that_grows_keeps_its_keys() -> None:
    before = plain_messages.conversation_of(MESSAGES[:3], FileFacts("talk"))
    after = plain_messages.conversation_of(MESSAGES, FileFacts("talk"))
    assert (after.key, after.messages[0].key) == (before.key, before.messages[0].key)
    assert plain_messages.conversation_of(MESSAGES, FileFacts("other")).key != after.key
    assert plain_messages.conversation_of([*MESSAGES[:2], MESSAGES[4]], FileFacts("talk")).key != after.key


@pytest.mark.parametrize(("zone", "hour"), [("", 9), ("Z", 10)])
def test_a_time_without_a_zone_is_read_in_that_of_the_user_and_told(zone: str, hour: int) -> None:
    message = {"role": "user", "content": "x", "timestamp": f"2024-01-01T10:00:00{zone}"}
    found = plain_messages.conversation_of([message], FileFacts("talk", ZoneInfo("Europe/Berlin")))
    assert found.messages[0].timestamp == datetime(2024, 1, 1, hour, tzinfo=UTC)
    assert [guess[:40] for guess in found.guesses] == ([] if zone else ["A file of messages writes times without "])


def test_each_line_may_have_a_conversation_of_its_own(tmp_path: Path) -> None:
    lines = [{"messages": MESSAGES}, {"messages": MESSAGES}, {"messages": []}, MESSAGES[:2], MESSAGES[4]]
    ((first, second, last), skipped) = read(tmp_path / "talk.jsonl", "\n".join(map(json.dumps, lines)))
    assert skipped == ["conversation without messages"]
    assert [len(said(found)) for found in (first, second, last)] == [4, 4, 2]
    assert len({first.key, second.key, last.key}) == 3
    assert first.key == plain_messages.conversation_of(MESSAGES, FileFacts("talk")).key


@pytest.mark.parametrize("text", ['[{"role": "user"}]', '{"role": "king", "content": "x"}\n', "[]\n", '[["role"]]\n'])
def test_other_lists_have_an_unknown_format(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImportFormatError):
        read(tmp_path / "a.json", text)


ROOT = "00000000-0000-0000-0000-000000000000"


def message(key: str, parent: str, text: str, second: int, **more: Any) -> dict[str, Any]:
    is_user = more.pop("isCreatedByUser", False)
    return {
        "_id": f"65f0{key}",
        "messageId": key,
        "conversationId": "c-1",
        "parentMessageId": parent,
        "sender": "User" if is_user else "GPT-4",
        "text": text,
        "isCreatedByUser": is_user,
        "error": False,
        "unfinished": False,
        "model": None if is_user else "gpt-4o",
        "createdAt": f"2024-03-12T09:00:{second:02}.000Z",
        **more,
    }


QUESTION = message(
    "q", ROOT, "What is mate?", 1, isCreatedByUser=True, files=[{"filename": "a.png", "type": "image/png"}]
)
OLD = message("a1", "q", "A friend.", 2)
CALL = {"id": "t1", "name": "search", "args": '{"q":"mate"}', "output": "a tea", "type": "tool_call"}
CONTENT = [
    {"type": "think", "think": "Tea or friend?"},
    {"type": "text", "text": "I look."},
    {"type": "tool_call", "tool_call": CALL},
    {"type": "text", "text": {"value": "A tea."}},
]
NEW = message("a2", "q", "", 4, content=CONTENT, unfinished=True)
FAILED = message("a3", "a2", '{"error": "no key"}', 3, error=True)
FACTS = {"conversationId": "c-1", "endpoint": "openAI", "title": "Mate", "exportAt": "09:05:00 GMT+0000"}
LIST = {**FACTS, "branches": True, "recursive": False, "messages": [QUESTION, OLD, NEW, FAILED]}
TREE = {
    **FACTS,
    "branches": True,
    "recursive": True,
    "messagesTree": [{**QUESTION, "children": [{**OLD, "children": []}, {**NEW, "children": [FAILED]}]}],
}


@pytest.mark.parametrize("export", [LIST, TREE])
def test_a_conversation_comes_with_branches_thoughts_and_calls(tmp_path: Path, export: dict[str, Any]) -> None:
    ((found,), _) = read(tmp_path / "Mate.json", json.dumps(export, separators=(",", ":")))
    assert (found.source, found.key, found.title) == ("librechat", "c-1", "Mate")
    question, words, *_, end = live(found)
    talk = [("assistant", "I look."), ("tool_use", ""), ("tool_result", "a tea"), ("assistant", "A tea.")]
    assert (said(found)[1:], words.reasoning) == (talk, "Tea or friend?")
    assert (question.files[0].name, end.model, end.status) == ("a.png", "gpt-4o", Status.INTERRUPTED)
    (other,) = (each for each in found.messages if each.key not in found.live)
    assert (other.content, other.parent) == ("A friend.", "q")
    assert dict(found.skipped) == {"reply that failed or is empty": 1}


def test_without_branches_the_list_is_the_conversation() -> None:
    found = librechat.conversation_of({**LIST, "messages": [QUESTION, OLD]})
    assert said(found) == [("user", "What is mate?"), ("assistant", "A friend.")]
