"""The ways in which litellm is asked, and kept from doing more than it should."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.litellm import library
from chorus_cli.models.litellm.client import LiteLLMClient
from chorus_cli.models.rules.events import ReplyEnd
from tests.models.providers.asked_models import BY_LITELLM, events_of, text_of
from tests.models.providers.fault_server import DONE, STREAM_HEAD, chunk, serving, usage_chunk
from tests.models.providers.ways import MODEL_MAP, MakeClient

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = BY_LITELLM


@pytest.mark.parametrize(
    ("model", "address"),
    [("lm_studio/qwen", "http://localhost:1234/v1"), ("hosted_vllm/qwen", "http://localhost:8000/v1")],
)
def test_what_is_meant_for_a_server_on_this_machine_does_not_go_to_openai(model: str, address: str) -> None:
    environment = {"OPENAI_BASE_URL": "https://llm.example/v1", "OPENAI_API_KEY": "sk-test"}
    # Not sent, for something may listen at these well-known ports.
    assert LiteLLMClient(environment, MODEL_MAP)._server_arguments(model) == {"api_base": address}


async def test_litellm_does_not_put_a_long_reply_together_again(test_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm = library.load()
    put_together = litellm.stream_chunk_builder
    sizes: list[int] = []

    def counting(chunks: Sequence[object], **arguments: object) -> object:
        sizes.append(len(chunks))
        return put_together(chunks, **arguments)

    monkeypatch.setattr(litellm, "stream_chunk_builder", counting)
    words = [f" {number}" for number in range(300)]
    pieces = (*map(chunk, words), chunk(finish_reason="stop"), usage_chunk(5, 300), DONE)
    async with serving(STREAM_HEAD, *pieces) as server:
        events = await events_of(MakeClient("litellm", AsyncExitStack()), server.address, test_key)
    assert text_of(events) == "".join(words)
    assert events[-1] == ReplyEnd("stop", {"prompt_tokens": 5, "completion_tokens": 300, "total_tokens": 305})
    assert sizes
    assert max(sizes) < 50
