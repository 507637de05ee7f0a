"""Which thoughts go back to a model, by the table."""

from __future__ import annotations

import pytest

from chorus_cli.models.providers.echoes import echo_rule
from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.rules.request import Echo, Span

EVER, WITH_CALLS, TURN = Echo(Span.EVER, calls_only=False), Echo(Span.EVER), Echo(Span.TURN)
BOUND = Echo(Span.TURN, is_bound=True)


@pytest.mark.parametrize(
    ("model", "echo"),
    [
        ("anthropic/claude-3-7-sonnet-20250219", WITH_CALLS),
        ("anthropic/claude-sonnet-4-20250514", WITH_CALLS),
        ("anthropic/claude-opus-4-1", WITH_CALLS),
        ("anthropic/claude-haiku-4-5-20251001", WITH_CALLS),
        ("anthropic/claude-sonnet-4-5-latest", WITH_CALLS),
        ("anthropic/claude-sonnet-4-6", BOUND),
        ("anthropic/claude-opus-4-50", BOUND),
        ("anthropic/claude-fable-5-2", BOUND),
        ("moonshot/kimi-k2.6", WITH_CALLS),
        ("moonshot/kimi-k2.7-code", EVER),
        ("fireworks_ai/deepseek-v4p1-flash", EVER),
        ("fireworks_ai/deepseek-v3p1", Echo()),
        ("together_ai/moonshotai/Kimi-K3", WITH_CALLS),
        ("hosted_vllm/deepseek-ai/DeepSeek-V4-Flash", EVER),
        ("hosted_vllm/qwen3", TURN),
        ("xai/grok-4.3", Echo()),
        ("openai/gpt-4o", Echo()),
    ],
)
def test_the_rule_of_a_model(model: str, echo: Echo) -> None:
    asked = endpoint(model, {})
    assert asked is not None
    assert echo_rule(asked).echo == echo
