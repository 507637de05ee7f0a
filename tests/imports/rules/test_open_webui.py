"""Open WebUI: thoughts and calls are taken out of the text, and parents are rebuilt from children."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pytest

from chorus_cli.imports.rules.open_webui import conversation_of, is_conversation
from chorus_cli.log.rules.messages import Status
from tests.imports.rules.exports import check, files_of, live, others, said, web, web_message

THOUGHTS = (
    '<details type="reasoning" done="true" duration="5">\n<summary>Thought for 5 seconds</summary>\n'
    "&gt; is 1 &lt; 2?\n> yes\n</details>\n"
)
CALL = (
    '<details type="tool_calls" done="true" id="c1" name="search" '
    'arguments="&quot;{\\&quot;q\\&quot;: \\&quot;tea\\&quot;}&quot;" result="&quot;found&quot;" files="">\n'
    "<summary>Tool Executed</summary>\n</details>"
)
CODE = (
    '<details type="code_interpreter" done="true" output="{&quot;stdout&quot;: &quot;2&quot;}">\n'
    "<summary>Analyzed</summary>\n```python\n1+1\n```\n</details>"
)
OUTPUT = [
    {
        "type": "reasoning",
        "content": [{"type": "output_text", "text": "> Paris, in full &amp; at length"}],
        "summary": None,
    },
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Paris"}'},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "18 C"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is mild."}]},
]
IMAGE = {"type": "image", "url": "data:image/png;base64,aGk="}
FULL = web(
    web_message("a", None, "user", "hello", files=[IMAGE]),
    web_message("b", "a", "assistant", "from the other model", model="gpt-4o"),
    web_message("c", "a", "assistant", f"{THOUGHTS}I look.\n{CALL}\nHere.", done=False),
)
LISTED = web(web_message("a", None, "assistant", "It is mild.", output=OUTPUT))


def test_a_conversation_is_read_along_its_current_branch() -> None:
    found = conversation_of(FULL)
    check(found)
    assert said(found) == [
        ("user", "hello"),
        ("assistant", "I look."),
        ("tool_use", ""),
        ("tool_result", "found"),
        ("assistant", "Here."),
    ]
    assert (found.source, found.key, found.title) == ("open-webui", "talk-3", "Mate")
    assert found.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert (others(found), found.messages[1].model) == (["from the other model"], "gpt-4o")


def test_thoughts_calls_pictures_and_broken_replies_are_kept() -> None:
    question, first, call, result, last = live(conversation_of(FULL))
    assert files_of(question) == [("image 1", "image/png", b"hi")]
    assert (first.reasoning, first.model) == ("is 1 < 2?\nyes", "llama3")
    assert '{\\"q\\": \\"tea\\"}' in (call.tool_calls or "")
    assert call.tool_call_id == result.tool_call_id
    assert (call.status, last.status) == (None, Status.INTERRUPTED)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (CODE, [("tool_use", ""), ("tool_result", '{"stdout": "2"}')]),
        (CALL.replace('result="&quot;found&quot;" ', ""), [("assistant", '[search]\n{"q": "tea"}')]),
        ('<details type="reasoning">never closed', [("assistant", '<details type="reasoning">never closed')]),
        ("<details><summary>x</summary>own</details>", [("assistant", "<details><summary>x</summary>own</details>")]),
        (THOUGHTS, [("assistant", "")]),
        ([{"type": "text", "text": "in parts"}], [("assistant", "in parts")]),
    ],
)  # fmt: skip
def test_details_in_a_text_are_read(content: Any, rows: list[tuple[str, str]]) -> None:
    assert said(conversation_of(web(web_message("a", None, "assistant", content)))) == rows


def test_a_list_beside_the_text_has_whole_thoughts_and_calls() -> None:
    text = '<details type="reasoning">short</details>\n<details type="tool_calls">18 C</details>\nIt is mild.'
    message = web_message("a", None, "assistant", text, output=OUTPUT)
    call, result, answer = live(conversation_of(web(message)))
    assert call.reasoning == "> Paris, in full &amp; at length"
    assert call.tool_calls is not None
    (use,) = json.loads(call.tool_calls)
    assert (use["function"]["name"], json.loads(use["function"]["arguments"])) == ("get_weather", {"city": "Paris"})
    assert (result.content, result.tool_call_id, answer.content) == ("18 C", use["id"], "It is mild.")
    only = conversation_of(web({**message, "content": ""}))
    assert said(only) == [("tool_use", ""), ("tool_result", "18 C"), ("assistant", "It is mild.")]


def test_code_and_a_call_without_an_answer_stand_in_the_list_too() -> None:
    output = [
        {"type": "open_webui:code_interpreter", "code": "1+1", "lang": "python", "output": {"stdout": "2"}},
        {"type": "function_call", "call_id": "c9", "name": "ls", "arguments": "{}", "status": "in_progress"},
    ]
    code, result, alone = live(conversation_of(web(web_message("a", None, "assistant", "", output=output))))
    assert '{\\"code\\": \\"1+1\\"}' in (code.tool_calls or "")
    assert (result.content, alone.content) == ('{"stdout": "2"}', "[ls]\n{}")


def test_a_reply_that_was_edited_has_the_words_of_the_edit() -> None:
    message = web_message("a", None, "assistant", "It is very mild.", output=OUTPUT)
    assert said(conversation_of(web(message))) == [("assistant", "It is very mild.")]


def test_parents_are_rebuilt_from_children() -> None:
    messages = [web_message(key, None, "user", key) for key in "abc"]
    for message, children in zip(messages, (["b", "c"], [], []), strict=True):
        del message["parentId"]
        message["childrenIds"] = children
    found = conversation_of(web(*messages))
    assert {message.key: message.parent for message in found.messages} == {"a": None, "b": "a", "c": "a"}


def test_without_a_history_the_live_path_is_read() -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]
    found = conversation_of({"id": "x", "chat": {"messages": messages, "title": "T"}})
    assert (said(found), found.title) == ([("user", "q"), ("assistant", "r")], "T")
    assert is_conversation({"chat": {"messages": []}})


def test_a_chat_may_stand_without_its_row() -> None:
    chat = FULL["chat"]
    assert is_conversation(chat)
    found = conversation_of({**chat, "id": ""})
    assert (said(found), found.title, found.key) == (said(conversation_of(FULL)), "Mate", "a")


def test_a_document_has_its_text_beside_it() -> None:
    document = {"type": "file", "file": {"filename": "a.pdf", "meta": {"content_type": "application/pdf"},
                                         "data": {"content": "text of it"}}}  # fmt: skip
    found = conversation_of(web(web_message("a", None, "user", "q", files=[document])))
    assert [(file.name, file.data) for file in found.messages[0].files] == [
        ("a.pdf", None),
        ("a.pdf.txt", b"text of it"),
    ]


def test_what_is_left_out_is_counted() -> None:
    messages = [
        web_message("a", None, "system", "be nice"),
        web_message("b", "a", "user", "q"),
        web_message("c", "b", "assistant", "", error={"content": "no such model"}),
        web_message("d", "c", "robot", "?"),
    ]
    assert dict(conversation_of(web(*messages)).skipped) == {
        "system prompt": 1,
        "reply that failed or is empty": 1,
        "message that cannot be read": 1,
    }


@pytest.mark.parametrize("piece", ["<details ", '<details type="reasoning">', '<details type="reasoning" type='])
def test_a_text_made_to_be_slow_is_read_at_once(piece: str) -> None:
    began = perf_counter()
    conversation_of(web(web_message("a", None, "assistant", piece * 100_000)))
    assert perf_counter() - began < 5
