"""Which thoughts go back to a model, by the table, and the provider's own parts of a reply word for word."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rules.calls import ToolCall, calls_as_json
from chorus_cli.log.rules.messages import Thoughts
from chorus_cli.models.providers.echoes import CALLED, SAID, Called, PartsRecord, Pieces, Said, echo_rule, replayed
from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.rules.request import Echo, PromptMessage, Span
from tests.amount import examples

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
def test_its_text_and_calls_are_there_once_whatever_became_of_its_parts(
    steps: list[tuple[str, str, bool]], change: str
) -> None:
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
