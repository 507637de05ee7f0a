"""Which models are offered and doubted."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import ModelNameError
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.personas.service.models import KnownModels, Models
from tests.world import World

LLAMA = "ollama_chat/llama3.2:latest"


async def test_before_anything_is_known_only_the_embedded_model_is_offered(world: World) -> None:
    assert list(world.services.models.offered("")) == [ELIZA]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        *(("", [LLAMA, "openai/gpt-5.4-mini", ELIZA]), ("o", [LLAMA, "openai/gpt-5.4-mini"])),
        *(("openai/", ["openai/gpt-5.4-mini"]), ("anth", ["anthropic/claude-sonnet-5"]), ("banana", [])),
    ],
)
async def test_what_could_answer_is_offered_first_and_all_else_by_its_beginning(
    world: World, typed: str, offered: list[str]
) -> None:
    world.services.models.load()
    assert list(world.services.models.offered(typed)) == offered


@pytest.mark.parametrize("typed", ["eliza", "ELIZA", "eliza --once"])
async def test_eliza_needs_no_provider(world: World, typed: str) -> None:
    assert (await world.told(f"/model {typed}")).startswith("Model: chorus/eliza (")


async def test_a_name_is_trusted_doubted_or_refused(world: World) -> None:
    assert await world.services.models.doubt("openai/brand-new") is None
    assert "knows no provider 'opnai'" in str(await world.services.models.doubt("opnai/gpt-5.4-mini"))
    with pytest.raises(ModelNameError, match="There is no model 'banana'"):
        await world.services.models.doubt("banana")


async def test_part_of_a_name_leads_to_the_likely_model(world: World) -> None:
    assert (await world.told("/model claude")).endswith(" Did you mean anthropic/claude-sonnet-5?")


def test_of_a_provider_the_usual_model_comes_first_and_what_is_not_for_conversation_last() -> None:
    talking = frozenset({"gemini/b", "gemini/gemini-3.8-flash", "xai/grok-4.3", "other/b"})
    known = KnownModels(lambda: talking | {"gemini/a-composer"}, frozenset, tuple, lambda: talking)
    models = Models(known, {"XAI_API_KEY": "key", "GEMINI_API_KEY": "key"})
    models.load()
    gemini = ["gemini/gemini-3.8-flash", "gemini/b", "gemini/a-composer"]
    assert list(models.offered("")) == [*gemini, "xai/grok-4.3", ELIZA]
    assert list(models.offered("gemini/")) == gemini
    assert list(models.offered("other")) == ["other/b"]


async def test_a_model_without_a_key_is_set_for_the_persona_the_key_asked_for_and_forgotten_again(world: World) -> None:
    assert await world.told("/model anthropic/claude-sonnet-5") == (
        "Model: anthropic/claude-sonnet-5 (set by /model)\n"
        "There is no key for Anthropic, so messages will fail. Set ANTHROPIC_API_KEY."
    )
    assert '"model": "anthropic/claude-sonnet-5"' in world.settings_text()
    assert "openai/test (--model)" in await world.told("/settings unset model")
    assert world.current.target().choice.model == "openai/test"


async def test_a_model_in_a_file_is_doubted_by_its_file_alone() -> None:
    known = KnownModels(
        frozenset, lambda: frozenset({"openai"}), tuple, frozenset, {"local/a b.gguf": "", "local/c": "No."}.__getitem__
    )
    models = Models(known, {})
    assert await models.doubt("local/a b.gguf") is None
    assert await models.doubt("local/c") == "No."
