"""Whose facts a model takes that the map does not list: by the names of families, kinds and versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.models.providers.model_map import family, relatives

LISTED = (
    *("claude-haiku-4-5-20251001", "claude-haiku-4-5", "claude-haiku-5-5", "claude-sonnet-5", "claude-opus-5-6"),
    *("claude-mythos-preview", "anthropic.claude-3-5-haiku-20241022-v1:0", "other/claude-3-5-haiku-20241022"),
    *("other/claude-haiku-9", "databricks/databricks-claude-haiku-9"),
    *("gemini/gemini-3.1-pro-preview", "gemini/gemini-3.8-flash", "gemini/gemini-3.10-flash", "gemini/gemini-4-argon"),
    *("gemini/gemini-exp-1206", "gemini-3.8-flash", "gemini/gemini-3.5-flash-lite", "vertex_ai/gemini-9-flash"),
    *("gpt-4", "gpt-4-32k", "gpt-4o", "gpt-5", "gpt-5.4-mini", "gpt-5.3-codex", "gpt-6-astra", "gpt-6.1-sol"),
    *("gpt-oss-200b", "azure/gpt-35-turbo", "o3", "o4-mini", "xai/grok-4.7", "xai/grok-4.20", "embed-9"),
)


@pytest.mark.parametrize(
    ("model", "nearest"),
    [
        pytest.param("anthropic/claude-haiku-6", "claude-haiku-5-5", id="the newest of its kind"),
        pytest.param("claude-haiku-6", "claude-haiku-5-5", id="without a provider"),
        pytest.param("anthropic/claude-haiku-5", "claude-haiku-4-5", id="none that is newer"),
        pytest.param("anthropic/claude-lyric-6", "claude-opus-5-6", id="of an unknown kind"),
        pytest.param("anthropic/claude-haiku-6-fast", "claude-haiku-5-5", id="of a variant"),
        pytest.param("anthropic/claude-haiku", "claude-haiku-5-5", id="no version is the newest"),
        pytest.param("anthropic/claude-haiku-latest", "claude-haiku-5-5", id="latest"),
        pytest.param("anthropic/claude-haiku-4-5-20991231", "claude-haiku-4-5", id="another snapshot"),
        pytest.param("vertex_ai/claude-haiku-4-5@20991231", "claude-haiku-4-5", id="a snapshot at Vertex"),
        pytest.param("anthropic/claude-sonnet-5-preview", "claude-sonnet-5", id="a preview"),
        pytest.param("anthropic/claude-mythos", "claude-opus-5-6", id="a listed name without a version is no newest"),
        pytest.param("bedrock/us.anthropic.claude-haiku-4-5-20251001-v9:0", "claude-haiku-4-5", id="at Bedrock"),
        pytest.param("openrouter/anthropic/claude-haiku-5.5:beta", "claude-haiku-5-5", id="at OpenRouter"),
        pytest.param(
            "anthropic/claude-3-5-haiku-latest", "anthropic.claude-3-5-haiku-20241022-v1:0", id="elsewhere only"
        ),
        pytest.param("anthropic/claude-2.1", None, id="older than all"),
        pytest.param("gemini/gemini-5-flash", "gemini/gemini-3.10-flash", id="3.10 is newer than 3.8"),
        pytest.param("gemini/gemini-3.9-flash", "gemini/gemini-3.8-flash", id="and newer than 3.9"),
        pytest.param("gemini/gemini-3.8-flash-preview-09-2027", "gemini/gemini-3.8-flash", id="month and year"),
        pytest.param("gemini/gemini-3.8-flash-001", "gemini/gemini-3.8-flash", id="a number of a snapshot"),
        pytest.param("gemini/gemini-5-pro", "gemini/gemini-3.1-pro-preview", id="pro is not flash"),
        pytest.param("gemini/gemini-5-flash-lite", "gemini/gemini-3.5-flash-lite", id="nor is flash-lite"),
        pytest.param("gemini/gemini-5", "gemini/gemini-4-argon", id="Gemini of no kind"),
        pytest.param("openai/gpt-6.2-sol", "gpt-6.1-sol", id="GPT"),
        pytest.param("openai/gpt-6.2-astra", "gpt-6-astra", id="GPT of an older kind"),
        pytest.param("openai/gpt-7-terra", "gpt-6.1-sol", id="GPT of an unknown kind"),
        pytest.param("openai/gpt-7-mini-2027-08-07", "gpt-5.4-mini", id="a small GPT"),
        pytest.param("openai/gpt-7", "gpt-5", id="GPT of no kind: no 4o, and no 32k"),
        pytest.param("openai/gpt-7-turbo", "gpt-6.1-sol", id="another provider's is never the newest"),
        pytest.param("openai/GPT-7-Mini", "gpt-5.4-mini", id="capitals"),
        pytest.param("openai/o5-mini", "o4-mini", id="o"),
        pytest.param("xai/grok-4.8", "xai/grok-4.7", id="Grok"),
        pytest.param("groq/openai/gpt-oss-300b", None, id="open weights"),
        pytest.param("huggingface/EleutherAI/gpt-j-6b", None, id="another maker's"),
        pytest.param("huggingface/my/noclaude-9", None, id="a part of a word"),
        pytest.param("anthropic/claude-9/mine", None, id="a folder"),
        pytest.param("ollama_chat/olmo-2", None, id="of no known family"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_model_takes_the_facts_of_the_newest_of_its_family_that_is_not_newer(model: str, nearest: str | None) -> None:
    for listed in (LISTED, reversed(LISTED)):
        assert next(iter(relatives(model, listed)), None) == nearest
    assert bool(family(model)) is (nearest is not None or model == "anthropic/claude-2.1")


@given(st.text() | st.from_regex(r"(?:claude|gpt|gemini|o)-?[\d.@:-]*[a-z]*", fullmatch=True))
def test_any_text_may_be_a_name(name: str) -> None:
    assert set(relatives(name, (*LISTED, name))) <= {*LISTED, name}
