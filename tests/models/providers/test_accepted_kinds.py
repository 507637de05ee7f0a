"""The kinds of attachments that models take, by litellm's map."""

from __future__ import annotations

import pytest

from chorus_cli.log.rules.attachments import ALL_SENT, Kind
from chorus_cli.models.providers.chat_messages import accepted_kinds
from tests.models.providers.ways import MODEL_MAP

TEXT, NO_PDF = frozenset({Kind.TEXT}), ALL_SENT - {Kind.PDF}


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("openai/gpt-4o", ALL_SENT),
        ("anthropic/claude-sonnet-4-5", ALL_SENT),
        ("gemini/gemini-2.5-flash", ALL_SENT),
        ("openai/gpt-3.5-turbo", TEXT),
        ("deepseek/deepseek-chat", TEXT),
        ("openai/a-model-of-tomorrow", ALL_SENT),
        ("local/model.gguf", TEXT),
        ("chorus/eliza", frozenset()),
    ],
)
def test_pictures_and_pdfs_are_sent_unless_the_map_says_no(model: str, kinds: frozenset[Kind]) -> None:
    assert accepted_kinds(model, MODEL_MAP) == kinds
