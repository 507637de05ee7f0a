"""Models that only OpenAI's Responses API serves, which litellm asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.rules.declaration import Parameter, Tool
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from tests.models.providers.asked_models import BY_LITELLM, HELLO
from tests.models.providers.fault_server import STREAM_HEAD, event, serving
from tests.models.providers.ways import MODEL_MAP

if TYPE_CHECKING:
    from chorus_cli.models.rules.events import ModelEvent
    from tests.models.providers.fault_server import Asked

pytestmark = BY_LITELLM

RECALL = Tool("recall", "Recall.", (Parameter("query", "Words."),))
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "o3-pro", "output": [], "tools": []}
USAGE = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
REPLY = (
    {"type": "response.created", "sequence_number": 0, "response": RESPONSE | {"status": "in_progress"}},
    {
        "type": "response.output_text.delta",
        "sequence_number": 1,
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "delta": "hi",
    },
    {
        "type": "response.completed",
        "sequence_number": 2,
        "response": RESPONSE | {"status": "completed", "usage": USAGE},
    },
)


async def replied(model: str, key: str, *tools: Tool) -> tuple[Asked, list[ModelEvent]]:
    async with serving(STREAM_HEAD, *map(event, REPLY)) as server:
        client = LiteLLMClient({"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": key}, MODEL_MAP)
        events = [each async for each in client.stream(ModelRequest(model, HELLO, tools=tools))]
    (asked,) = server.asked
    return asked, events


@pytest.mark.parametrize("tools", [(), (RECALL,)], ids=["without tools", "with tools"])
@pytest.mark.parametrize("model", ["openai/o3-pro", "openai/gpt-5-codex", "openai/responses/gpt-4o"])
async def test_a_model_of_the_responses_api_answers(test_key: str, model: str, tools: tuple[Tool, ...]) -> None:
    asked, events = await replied(model, test_key, *tools)
    assert asked.path == "/v1/responses"
    assert ("tools" in asked.body) == bool(tools)
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert events == [TextDelta("hi"), ReplyEnd("stop", usage)]
