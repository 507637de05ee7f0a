"""The effort of a request through litellm: the wire's parameters, where litellm would drop them."""

from __future__ import annotations

import pytest

from chorus_cli.models.litellm.client import effort_arguments
from chorus_cli.models.rules.request import ModelRequest

OWN = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("model", "effort", "arguments"),
    [
        ("zai/glm-5.3", "medium", {"extra_body": {"reasoning_effort": "high"}}),
        ("minimax/MiniMax-M2.7", None, {"extra_body": {"reasoning_split": True}}),
        ("deepseek/deepseek-v4-flash", None, {}),
        ("anthropic/claude-sonnet-5", "low", {"reasoning_effort": "low"}),
        ("bedrock/anthropic.claude-sonnet-5", "low", {"reasoning_effort": "low"}),
        ("openai/gpt-5.5", "low", {"reasoning_effort": "low", "store": False}),
        ("openai/responses/gpt-5.5", None, {"store": False}),
    ],
)
def test_the_arguments_of_a_model(model: str, effort: str | None, arguments: dict[str, object]) -> None:
    assert effort_arguments(ModelRequest(model, (), effort=effort), {}) == arguments


@pytest.mark.parametrize(("model", "arguments"), [("openai/m", {}), ("openai/responses/m", {"store": False})])
def test_a_server_of_ones_own_is_told_of_a_store_only_by_the_protocol_that_has_one(
    model: str, arguments: dict[str, object]
) -> None:
    assert effort_arguments(ModelRequest(model, ()), OWN) == arguments
