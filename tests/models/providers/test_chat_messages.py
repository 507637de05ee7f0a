"""Messages as they are sent: markers, calls and tools, attachments, and the thoughts that go back, by the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rules.attachments import ALL_SENT, Kind
from chorus_cli.log.rules.calls import ToolCall, calls_as_json
from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.chat_messages import (
    accepted_kinds,
    chat_message,
    marked_messages,
    refuses_tools,
    reply_limit,
    takes_tools,
    wants_markers,
)
from chorus_cli.models.providers.echoes import CALLED, SAID, Called, PartsRecord, Pieces, Said, echo_rule, replayed
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.request import Echo, ModelRequest, PromptMessage, Span
from chorus_cli.models.wire.chat_completions import offered_tools
from tests.amount import examples
from tests.models.providers.asked_models import HELLO, MODEL_MAP

CALL = '[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]'
MESSAGES = {
    "s": PromptMessage("system", "Be kind."),
    "u": PromptMessage("user", "hello"),
    "a": PromptMessage("assistant", "hi"),
    "c": PromptMessage("assistant", "", tool_calls=CALL),
    "t": PromptMessage("tool", "found", tool_call_id="c1"),
    "_": PromptMessage("system", " \n"),
    "n": PromptMessage("user", "[Note: Be brief.]\n\nhello", note="[Note: Be brief.]"),
}


def translated(letters: str, model: str = "claude-sonnet-4-5") -> list[dict[str, object]]:
    request = ModelRequest(model, tuple(MESSAGES[letter] for letter in letters), tools=(Tool("f", "Find."),))
    return [chat_message(marked) for marked in marked_messages(request, ModelMap())]


def test_a_claude_that_keeps_prompts_wants_markers() -> None:
    wanting = (
        *("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5", "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        *("anthropic.claude-haiku-4-5-20251001-v1:0", "vertex_ai/claude-sonnet-4-5", "azure_ai/claude-sonnet-4-5"),
        "anthropic/claude-of-tomorrow",
    )
    others = (
        *("anthropic/claude-1-of-old", "bedrock/anthropic.claude-v1", "databricks/databricks-claude-sonnet-4-5"),
        *("replicate/anthropic/claude-4-sonnet", "openai/claude-sonnet-4-5", "openai/gpt-4o", "gpt-4o", "chorus/eliza"),
    )
    assert [name for name in (*wanting, *others) if wants_markers(name, ModelMap())] == list(wanting)


MARKED = {
    "su": "^^",
    "suau": "^^ ^",
    "suauau": "^  ^ ^",
    "suauauau": "^    ^ ^",
    "suuu": "^ ^^",
    "uau": "^ ^",
    "_uau": " ^ ^",
    "suauct": "^^ ^",
    "suctau": "^^   ^",
    "suanau": "^^ ^ ^",
    "suauanau": "^  ^ ^ ^",
    "suauan": "^  ^ ^",
    "s": "^",
    "a": "",
    "": "",
}


@pytest.mark.parametrize(("messages", "markers"), MARKED.items())
def test_the_system_message_and_the_two_newest_questions_are_marked(messages: str, markers: str) -> None:
    prompt = [MESSAGES[letter] for letter in messages]
    marked = translated(messages)
    marker = {"cache_control": {"type": "ephemeral"}}
    for message, sent, mark in zip(prompt, marked, markers.ljust(len(prompt)), strict=True):
        block = [{"type": "text", "text": message.content, **marker}]
        assert sent["content"] == (block if mark == "^" else message.content)
    assert [sent["role"] for sent in marked] == [message.role for message in prompt]
    plain = translated(messages, "gpt-4o")
    assert [sent["content"] for sent in plain] == [message.content for message in prompt]


@pytest.mark.parametrize(
    ("model", "most", "limit", "prompt", "told"),
    [
        pytest.param("claude-sonnet-4-5", None, 200_000, 1_000, None, id="there is room for the longest reply"),
        pytest.param("claude-sonnet-4-5", None, 200_000, 160_000, 32_000, id="there is not"),
        pytest.param("claude-sonnet-4-5", None, 200_000, 195_000, 1, id="there is hardly any"),
        pytest.param("claude-sonnet-4-5", None, 4_000, 3_900, None, id="the user's limit is for requests"),
        pytest.param("claude-sonnet-4-5", 500, 200_000, 160_000, 500, id="the user has said"),
        pytest.param("claude-sonnet-4-5", None, None, None, None, id="nobody knows"),
        pytest.param("claude-haiku-4-5-next", None, 200_000, 1_000, 64_000, id="litellm does not know the longest"),
        pytest.param("claude-haiku-4-5-next", None, 200_000, 160_000, 32_000, id="nor that there is no room for it"),
        pytest.param("gpt-4o", None, 128_000, 120_000, None, id="another provider"),
        pytest.param("gpt-4o", 500, 128_000, 120_000, 500, id="another provider is told too"),
    ],
)
def test_a_reply_is_promised_no_more_than_there_is_room_for(
    model: str, most: int | None, limit: int | None, prompt: int | None, told: int | None
) -> None:
    request = ModelRequest(model, (), max_output_tokens=most, context_tokens=limit, prompt_tokens=prompt)
    assert reply_limit(request, ModelMap()) == told


def test_pictures_and_pdfs_are_sent_unless_the_map_says_no() -> None:
    seeing = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash", "openai/a-model-of-tomorrow")
    reading = ("openai/gpt-3.5-turbo", "deepseek/deepseek-chat", "local/model.gguf", "chorus/eliza")
    assert {accepted_kinds(name, MODEL_MAP) for name in seeing} == {ALL_SENT}
    assert {accepted_kinds(name, MODEL_MAP) for name in reading} == {frozenset({Kind.TEXT})}


ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
OFFERING = ModelRequest("openai/m", HELLO, tools=(ECHO,))


def test_without_tools_the_request_says_nothing_of_them() -> None:
    assert offered_tools(ModelRequest("openai/m", HELLO)) == {}
    assert offered_tools(replace(OFFERING, model="ollama_chat/llama3", may_call=False)) == {}


def test_other_errors_are_no_refusal_of_tools() -> None:
    told = {
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message.": 400,
        "This model's maximum context length is 4096 tokens; 9 in the tools.": 400,
        "temperature is not supported with this model": 400,
        "Incorrect API key; tools are not supported.": 401,
        "Too many tool calls are not supported on this plan": 429,
        "tools are not supported": None,
    }
    assert [message for message, status in told.items() if refuses_tools(status, message)] == []


def test_tools_are_offered_unless_the_map_says_no() -> None:
    offered = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "openai/a-model-of-tomorrow", "ollama_chat/anything")
    others = ("perplexity/sonar", "ollama/llama3.1", "chorus/eliza")
    assert [name for name in (*offered, *others) if takes_tools(name, MODEL_MAP)] == list(offered)


EVER, WITH_CALLS, TURN = Echo(Span.EVER, calls_only=False), Echo(Span.EVER), Echo(Span.TURN)
BOUND = Echo(Span.TURN, is_bound=True)


def test_the_rule_of_a_model() -> None:
    to_4_5 = "3-7-sonnet-20250219 sonnet-4-20250514 opus-4-1 haiku-4-5-20251001 sonnet-4-5-latest"
    table = {
        WITH_CALLS: "moonshot/kimi-k2.6 together_ai/moonshotai/Kimi-K3",
        BOUND: "anthropic/claude-sonnet-4-6 anthropic/claude-opus-4-50 anthropic/claude-fable-5-2",
        EVER: "moonshot/kimi-k2.7-code fireworks_ai/deepseek-v4p1-flash hosted_vllm/deepseek-ai/DeepSeek-V4-Flash",
        TURN: "hosted_vllm/qwen3",
        Echo(): "fireworks_ai/deepseek-v3p1 xai/grok-4.3 openai/gpt-4o",
    }
    rules = [(f"anthropic/claude-{name}", WITH_CALLS) for name in to_4_5.split(" ")]
    for model, echo in (*rules, *((name, echo) for echo, names in table.items() for name in names.split(" "))):
        asked = endpoint(model, {})
        assert asked is not None
        assert (model, echo_rule(asked).echo) == (model, echo)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("said"), TEXTS, st.booleans()),
        st.tuples(st.just("called"), st.sampled_from(["a", "b", ""]), st.booleans()),
        st.tuples(st.just("own"), TEXTS, st.just(value=False)),
    ),
    max_size=8,
)


def recorded(steps: list[tuple[str, str, bool]]) -> tuple[PartsRecord, str, list[ToolCall]]:
    """Return the record of a reply, its text, and its calls with the ids that the log gives them."""
    record, text = PartsRecord(), ""
    calls: list[ToolCall] = []
    for kind, value, is_signed in steps:
        if kind == "own":
            record.add({"type": "thinking", "thinking": Pieces([value, "."])})
            continue
        if kind == "said":
            text += value
            record.said(value)
        else:
            number = sum(call.name == value for call in calls)
            id_ = f"{value or 'call'}_{number}" if number or not value else value
            calls.append(ToolCall(id_, value, "{}"))
            record.called(value)
        if is_signed:
            record.sign(SAID if kind == "said" else CALLED, {"signature": "s"})
    return record, text, calls


def message_of(steps: list[tuple[str, str, bool]], form: str = "x") -> PromptMessage:
    record, text, calls = recorded(steps)
    written = calls_as_json(calls) if calls else None
    return PromptMessage("assistant", text, tool_calls=written, thoughts=Thoughts("hm", record.written(form)))


@examples(300)
@given(STEPS)
def test_a_reply_comes_back_as_it_came(steps: list[tuple[str, str, bool]]) -> None:
    message = message_of(steps)
    back = list(replayed(message, "x"))
    assert "".join(part.text for part in back if isinstance(part, Said)) == message.content
    own = [part for part in back if isinstance(part, dict)]
    assert own == [{"type": "thinking", "thinking": f"{value}."} for kind, value, _ in steps if kind == "own"]
    calls = [part for part in back if isinstance(part, Called)]
    assert [part.call.name for part in calls] == [value for kind, value, _ in steps if kind == "called"]
    if own:
        signed = [is_signed for kind, _, is_signed in steps if kind == "called"]
        assert [bool(part.own) for part in calls] == signed


@examples(200)
@given(STEPS, st.sampled_from(["other", "text", "calls"]))
def test_its_text_and_calls_are_there_once_whatever_comes(steps: list[tuple[str, str, bool]], change: str) -> None:
    message = message_of(steps)
    calls = [] if message.tool_calls is None else json.loads(message.tool_calls)
    if change == "text":
        message = message._replace(content=f"{message.content}!")
    if change == "calls":
        calls = calls[1:]
        message = message._replace(tool_calls=json.dumps(calls) if calls else None)
    back = list(replayed(message, "y" if change == "other" else "x"))
    assert "".join(part.text for part in back if isinstance(part, Said)) == message.content
    assert sorted(part.call.id for part in back if isinstance(part, Called)) == sorted(each["id"] for each in calls)
    if change == "other":
        assert not any(isinstance(part, dict) for part in back)


def test_parts_that_cannot_be_read_are_left_out() -> None:
    message = PromptMessage("assistant", "hi", thoughts=Thoughts("hm", "{not JSON"))
    assert list(replayed(message, "x")) == [Said("hi", {})]


def test_nothing_is_kept_of_a_reply_without_parts_of_the_providers_own() -> None:
    record = PartsRecord()
    record.said("hi")
    record.called("a")
    assert record.written("x") == ""
