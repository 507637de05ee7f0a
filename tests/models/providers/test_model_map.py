"""Facts read from litellm's files, also for models to come: sizes, prices, the names of models and of providers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.models.litellm import library
from chorus_cli.models.providers.model_map import ModelMap, family, relatives

Fact = TypeVar("Fact")
TAKES = {"supports_system_messages": True, "supports_sampling_params": False}
OPENAI, CHAT = {"litellm_provider": "openai"}, {"mode": "chat"}
WORDS = {"litellm_provider": "one of many", "max_input_tokens": "the figure", "max_tokens": "the same"}
MODELS = {
    "sample_spec": {**WORDS, "mode": "one of: chat, embedding", "input_cost_per_token": 0.0},
    "gpt-x": {**OPENAI, **CHAT, "max_input_tokens": 100_000, "max_tokens": 4000, "input_cost_per_token": 2e-06},
    "gpt-x-pro": {**OPENAI, "mode": "responses", "input_cost_per_token": 1e-05},
    "unsure": {**OPENAI, "max_tokens": 4096, "supports_prompt_caching": "yes"},
    "ft:gpt-x": {**OPENAI, **CHAT, "max_tokens": 4000},
    "claude-x": {"litellm_provider": "anthropic", **CHAT, "max_input_tokens": 200_000, "supports_prompt_caching": True},
    "x-latest": {"alias_of": "claude-x"},
    "x-round": {"alias_of": "x-latest"},
    "gemini/gem-x": {"litellm_provider": "gemini", **CHAT, "max_input_tokens": 1_000_000},
    "gem-x": {"litellm_provider": "vertex_ai-language-models", **CHAT, "max_input_tokens": 900_000},
    "deep-x": {"litellm_provider": "deepseek", **CHAT, "max_input_tokens": 64_000, **TAKES},
    "openai/old": {**OPENAI, **CHAT},
    "old": {**OPENAI, **CHAT, "max_tokens": 4096, "input_cost_per_token": 1e-06},
    "together-up-to-4b": {"litellm_provider": "together_ai", **CHAT, "input_cost_per_token": 1e-07},
    "gone/model": {"litellm_provider": "gone", **CHAT, "max_tokens": 4096},
    "free": {**OPENAI, **CHAT, "input_cost_per_token": 0},
    "embedder": {**OPENAI, "mode": "embedding", "supports_prompt_caching": "yes", "max_input_tokens": 8000},
    "unsaid": {**OPENAI, **CHAT, "max_input_tokens": None, "input_cost_per_token": None},
    "zero": {**OPENAI, "max_input_tokens": 0, "input_cost_per_token": -1},
    "strange": {**OPENAI, "input_cost_per_token": float("nan"), "max_tokens": 7},
    "odd": "no object",
}
SOURCE = '''
class Other(str, Enum):
    NAME = "other"


class LlmProviders(str, Enum):
    """All of them."""

    OPENAI = "openai"
    OPENAI_LIKE = "openai_like"  # embedding only
    GEMINI = "gemini"
    A2A = "a2a"
    NANO = "nano-gpt"


LlmProvidersSet: Final = {"not": "one"}
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "types").mkdir()
    (tmp_path / "llms" / "openai_like").mkdir(parents=True)
    (tmp_path / "model_prices_and_context_window_backup.json").write_text(json.dumps(MODELS))
    (tmp_path / "types" / "utils.py").write_text(SOURCE)
    (tmp_path / "llms" / "openai_like" / "providers.json").write_text('{"veniceai": {"base_url": "somewhere"}}')
    return tmp_path


def each_of(table: Mapping[Fact, str]) -> Iterator[tuple[str, Fact]]:
    """Yield the names in a table by their fact, and the fact."""
    return ((name, fact) for fact, names in table.items() for name in names.split(" "))


def test_the_map_is_asked_by_the_name_and_by_the_name_without_its_provider(folder: Path) -> None:
    known = ModelMap(folder)
    none = "x-round anthropic/gpt-x vert/gem-x openrouter/anthropic/claude-x /gpt-x unsaid zero odd sample_spec "
    told = {100_000: "gpt-x openai/gpt-x", 200_000: "anthropic/claude-x x-latest anthropic/x-latest", None: none}
    for name, tokens in each_of(told | {1_000_000: "gemini/gem-x", 900_000: "vertex_ai/gem-x", 4096: "openai/old"}):
        assert (name, known.limit_tokens(name)) == (name, tokens)


def test_a_price_is_what_one_token_of_input_costs(folder: Path) -> None:
    none = "anthropic/gpt-x claude-x unsaid zero strange odd nosuch"
    for name, cost in each_of({2e-06: "gpt-x openai/gpt-x", 1e-06: "openai/old", 0.0: "free", None: none}):
        assert (name, ModelMap(folder).input_cost(name)) == (name, cost)


def test_a_model_does_what_the_map_says_plainly(folder: Path) -> None:
    known = ModelMap(folder)
    for name, caches in each_of({True: "claude-x anthropic/claude-x", False: "openai/claude-x gpt-x unsure odd"}):
        assert (name, bool(known.supports(name, "prompt_caching"))) == (name, caches)
    refusing = "deep-x deepseek/deep-x"
    for name, takes in each_of({True: "anthropic/claude-x deepseek/deep-of-tomorrow", False: refusing}):
        assert (name, known.takes_temperature(name)) == (name, takes)
    unknown = "gemini/gem-of-tomorrow embedder"
    for name, reads in each_of({True: "deepseek/deep-x", False: "gemini/gem-x", None: unknown}):
        assert (name, known.supports(name, "system_messages")) == (name, reads)


def test_the_names_are_what_can_chat_as_litellm_wants_it_typed(folder: Path) -> None:
    assert ModelMap(folder).names() == {
        *("gpt-x", "openai/gpt-x", "gpt-x-pro", "openai/gpt-x-pro", "claude-x", "x-latest", "gemini/gem-x", "gem-x"),
        *("deepseek/deep-x", "openai/old", "old", "free", "openai/free", "unsaid", "openai/unsaid"),
    }


def test_another_name_in_the_map_stands_for_a_model(folder: Path) -> None:
    meant = {"x-latest": "claude-x", "anthropic/x-latest": "anthropic/claude-x"}
    for name in (*meant, "openai/x-latest", "claude-x", "anthropic/new"):
        assert ModelMap(folder).meant(name) == meant.get(name, name)


def test_the_providers_are_those_with_code_and_those_with_an_address(folder: Path) -> None:
    assert ModelMap(folder).providers() == {"openai", "openai_like", "gemini", "a2a", "nano-gpt", "veniceai"}


@pytest.mark.parametrize("content", [None, b"", b"{", b"[1]", b"\xff"])
def test_a_map_that_cannot_be_read_knows_no_model(folder: Path, content: bytes | None) -> None:
    path = folder / "model_prices_and_context_window_backup.json"
    path.unlink() if content is None else path.write_bytes(content)
    model_map = ModelMap(folder)
    assert (model_map.limit_tokens("gpt-x"), model_map.input_cost("gpt-x")) == (None, None)
    assert model_map.names() == frozenset()
    assert "openai" in model_map.providers()


@pytest.mark.parametrize("name", ["types/utils.py", "llms/openai_like/providers.json"])
@pytest.mark.parametrize("content", [None, b"[1]", b"\xff"])
def test_half_a_list_of_providers_is_none_takes_no_name_away(folder: Path, name: str, content: bytes | None) -> None:
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    model_map = ModelMap(folder)
    assert model_map.providers() == frozenset()
    assert {"gpt-x", "gone/model"} <= model_map.names()


def test_the_files_are_read_once_however_many_ask_at_once(folder: Path) -> None:
    model_map = ModelMap(folder)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(model_map.limit_tokens, ["gpt-x"] * 20)) == {100_000}
    assert "veniceai" in model_map.providers()
    for path in folder.rglob("*.json"):
        path.unlink()
    assert model_map.limit_tokens("claude-x") == 200_000
    assert "veniceai" in model_map.providers()


def facts(known: ModelMap, model: str) -> tuple[object, ...]:
    of_model = (
        *(known.relative, known.limit_tokens, known.input_cost, known.output_tokens, known.prices),
        *(known.takes_temperature, known.thinks),
    )
    abilities = ("prompt_caching", "function_calling", "system_messages", "vision", "pdf_input")
    return (*(each(model) for each in of_model), *(known.supports(model, each) for each in abilities))


def test_a_fact_looked_up_in_the_text_of_a_map_is_that_of_the_whole_map(folder: Path) -> None:
    whole = ModelMap(folder)
    path = folder / "model_prices_and_context_window_backup.json"
    path.write_text(json.dumps(MODELS, indent=4).replace('\n    "claude-x"', '\n"claude-x"'))
    for name in [*MODELS, *whole.names(), "gpt", 'gpt-x"', "nosuch", "max_tokens"]:
        assert facts(ModelMap(folder), name) == facts(whole, name)


def test_a_fact_looked_up_in_the_shipped_map_is_that_of_the_whole_map() -> None:
    looked_up, whole = ModelMap(), ModelMap()
    names = sorted(whole.names())
    assert looked_up._names is None
    claudes = [name for name in names if name.startswith("anthropic/")]
    for name in [*names[::25], *claudes, "anthropic/claude-haiku-99", "openai/gpt-99-sol", "vertex_ai/gemini-99-pro"]:
        assert facts(looked_up, name) == facts(whole, name), name
    assert looked_up._names is None


FABLE = {
    "litellm_provider": "anthropic",
    "max_input_tokens": 1_000_000,
    "max_output_tokens": 128_000,
    "mode": "chat",
    "input_cost_per_token": 1e-05,
    "output_cost_per_token": 5e-05,
    "provider_specific_entry": {"us": 1.1, "claude-fable-6": {"max_input_tokens": 7}},
    "supports_function_calling": True,
    "supports_pdf_input": True,
    "supports_prompt_caching": True,
    "supports_reasoning": True,
    "supports_sampling_params": False,
    "supports_vision": True,
}
CODEX = {"litellm_provider": "openai", "max_input_tokens": 272_000, "supports_function_calling": True}
FAMILIES = {
    "claude-fable-5-1": FABLE,
    "claude-fable-6": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 2e-05},
    "claude-fable-5": {**FABLE, "max_output_tokens": 64_000},
    "claude-fable-7": {**FABLE, "mode": "embedding"},
    "gpt-6.3-codex": {**CODEX, "mode": "responses"},
    "gpt-6.3": {**CODEX, "mode": "chat", "supported_endpoints": ["/v1/chat/completions", "/v1/responses"]},
    "gpt-6.3-operator": {**CODEX, "mode": "chat", "supported_endpoints": ["/v1/responses"]},
}
NOT_LISTED = "anthropic/claude-fable-99"


@pytest.fixture(params=["looked up in the text", "read as a whole", "in one line"])
def families(folder: Path, request: pytest.FixtureRequest) -> ModelMap:
    """Return a map of families in litellm's layout, in which a line is not indented as it should be."""
    text = json.dumps({"sample_spec": MODELS["sample_spec"], **FAMILIES}, indent=4)
    text = text.replace('\n    "claude-fable-5-1"', '\n"claude-fable-5-1"')
    if request.param == "in one line":
        text = json.dumps(FAMILIES)
    (folder / "model_prices_and_context_window_backup.json").write_text(text)
    known = ModelMap(folder)
    if request.param == "read as a whole":
        known.names()
    return known


def test_a_model_of_a_known_family_takes_all_but_the_prices_of_the_newest_that_is_described(families: ModelMap) -> None:
    assert families.relative(NOT_LISTED) == "claude-fable-5-1"
    assert families.relative("claude-fable-5-1") is None
    listed, guessed = facts(families, "anthropic/claude-fable-5-1"), facts(families, NOT_LISTED)
    without_prices = (1_000_000, None, 128_000, None)
    assert (listed[1], guessed[1:5]) == (1_000_000, without_prices)
    assert listed[5:] == guessed[5:] == (False, True, True, True, False, True, True)
    assert families.prices("anthropic/claude-fable-5-1") is not None


def test_a_listed_model_without_figures_takes_those_only(families: ModelMap) -> None:
    assert families.relative("anthropic/claude-fable-6") == "claude-fable-5-1"
    assert families.limit_tokens("anthropic/claude-fable-6") == 1_000_000
    assert families.output_tokens("anthropic/claude-fable-6") == 128_000
    assert families.input_cost("anthropic/claude-fable-6") == 2e-05
    assert families.thinks("anthropic/claude-fable-6") is False


def test_the_protocol_in_a_name_changes_nothing(families: ModelMap) -> None:
    assert facts(families, "openai/responses/gpt-6.3-codex")[1:] == facts(families, "openai/gpt-6.3-codex")[1:]
    assert families.limit_tokens("openai/responses/gpt-6.3-codex") == 272_000


def test_of_another_family_nothing_is_guessed(families: ModelMap) -> None:
    nothing = (None, None, None, None, None, True, None, None, None, None, None, None)
    assert facts(families, "openai/a-model-of-tomorrow") == nothing
    assert facts(families, "gemini/gemini-5-pro") == nothing


def test_the_shipped_map_tells_which_models_think_and_what_one_holds_and_costs() -> None:
    thinking = "anthropic/claude-sonnet-5 openai/gpt-5.4-mini openai/gpt-99-sol"
    for model, thinks in each_of({True: thinking, False: "openai/gpt-4o", None: "openai/mine"}):
        assert (model, ModelMap().thinks(model)) == (model, thinks)
    assert (ModelMap().limit_tokens("openai/gpt-4o"), ModelMap().input_cost("gpt-4o")) == (128_000, 2.5e-06)


RELATIVES = {
    "anthropic/claude-haiku-99": r"claude-haiku-\d",
    "openrouter/anthropic/claude-opus-99": r"claude-opus-\d",
    "bedrock/us.anthropic.claude-sonnet-99-20991231-v1:0": r"claude-sonnet-\d",
    "gemini/gemini-99-flash": r"gemini/gemini-[\d.]+-flash",
    "vertex_ai/gemini-99-pro": r"gemini/gemini-[\d.]+-pro(?:-preview)?",
    "openai/gpt-99-astra": r"gpt-[\d.]+-astra",
    "openai/gpt-99-mini": r"gpt-[\d.]+-mini",
    "gpt-5.4-mini-2099-01-01": r"gpt-5\.4-mini",
    "anthropic/claude-sonnet-4-5-20991231": r"claude-sonnet-4-5",
}


def test_the_shipped_map_has_relatives_of_models_to_come() -> None:
    known = ModelMap()
    for model, relative in RELATIVES.items():
        found = known.relative(model) or ""
        assert re.match(relative, found)
        assert known.limit_tokens(model) == known.limit_tokens(found)
        assert known.output_tokens(model) == known.output_tokens(found)
        assert (known.prices(model), known.input_cost(model)) == (None, None)


def test_the_providers_are_exactly_those_of_the_installed_litellm() -> None:
    library.load()
    from litellm.llms.openai_like.json_loader import JSONProviderRegistry  # noqa: PLC0415 - two seconds of import
    from litellm.types.utils import LlmProviders  # noqa: PLC0415 - see above

    declared = {provider.value for provider in LlmProviders} | set(JSONProviderRegistry.list_providers())
    assert ModelMap().providers() == declared


def test_the_installed_litellm_finds_a_provider_for_every_name_without_one() -> None:
    litellm = library.load()
    # Only bare names are asked for: for a few prefixes the same question would log in somewhere.
    bare = [name for name in ModelMap().names() if "/" not in name]
    assert len(bare) > 100
    for name in bare:
        assert litellm.get_llm_provider(name)[1]


def test_what_only_speaks_composes_or_works_a_screen_is_not_for_conversation() -> None:
    known = ModelMap()
    assert {"anthropic/claude-sonnet-5", "gemini/gemini-2.5-flash"} <= known.conversation_names() <= known.names()
    others = [name for name in known.names() - known.conversation_names() if name.startswith("gemini/")]
    assert others
    assert all(not name.startswith("gemini/gemini-2.5-flash") for name in others)
    assert not [name for name in known.conversation_names() if "tts" in name.split("-") or "computer-use" in name]


LISTED = (
    *("claude-haiku-4-5-20251001", "claude-haiku-4-5", "claude-haiku-5-5", "claude-sonnet-5", "claude-opus-5-6"),
    *("claude-mythos-preview", "anthropic.claude-3-5-haiku-20241022-v1:0", "other/claude-3-5-haiku-20241022"),
    *("other/claude-haiku-9", "databricks/databricks-claude-haiku-9"),
    *("gemini/gemini-3.1-pro-preview", "gemini/gemini-3.8-flash", "gemini/gemini-3.10-flash", "gemini/gemini-4-argon"),
    *("gemini/gemini-exp-1206", "gemini-3.8-flash", "gemini/gemini-3.5-flash-lite", "vertex_ai/gemini-9-flash"),
    *("gpt-4", "gpt-4-32k", "gpt-4o", "gpt-5", "gpt-5.4-mini", "gpt-5.3-codex", "gpt-6-astra", "gpt-6.1-sol"),
    *("gpt-oss-200b", "azure/gpt-35-turbo", "o3", "o4-mini", "xai/grok-4.7", "xai/grok-4.20", "embed-9"),
)


NEAREST = {
    # The newest of its kind, but none that is newer; without a version the newest, as the one of an unknown kind.
    "claude-haiku-5-5": "anthropic/claude-haiku-6 claude-haiku-6 anthropic/claude-haiku-6-fast anthropic/claude-haiku "
    "anthropic/claude-haiku-latest openrouter/anthropic/claude-haiku-5.5:beta",
    "claude-opus-5-6": "anthropic/claude-lyric-6 anthropic/claude-mythos",
    # Other snapshots, also at Vertex and at Bedrock; previews.
    "claude-haiku-4-5": "anthropic/claude-haiku-5 anthropic/claude-haiku-4-5-20991231 "
    "vertex_ai/claude-haiku-4-5@20991231 bedrock/us.anthropic.claude-haiku-4-5-20251001-v9:0",
    "claude-sonnet-5": "anthropic/claude-sonnet-5-preview",
    # Listed elsewhere only.
    "anthropic.claude-3-5-haiku-20241022-v1:0": "anthropic/claude-3-5-haiku-latest",
    # 3.10 is newer than 3.8, and newer than 3.9; pro is not flash, nor is flash-lite.
    "gemini/gemini-3.10-flash": "gemini/gemini-5-flash",
    "gemini/gemini-3.8-flash": "gemini/gemini-3.9-flash gemini/gemini-3.8-flash-preview-09-2027 "
    "gemini/gemini-3.8-flash-001",
    "gemini/gemini-3.1-pro-preview": "gemini/gemini-5-pro",
    "gemini/gemini-3.5-flash-lite": "gemini/gemini-5-flash-lite",
    "gemini/gemini-4-argon": "gemini/gemini-5",
    # Of an unknown kind: another provider's is never the newest. Of no kind: no 4o, and no 32k.
    "gpt-6.1-sol": "openai/gpt-6.2-sol openai/gpt-7-terra openai/gpt-7-turbo",
    "gpt-6-astra": "openai/gpt-6.2-astra",
    "gpt-5.4-mini": "openai/gpt-7-mini-2027-08-07 openai/GPT-7-Mini",
    "gpt-5": "openai/gpt-7",
    "o4-mini": "openai/o5-mini",
    "xai/grok-4.7": "xai/grok-4.8",
    # Older than all, open weights, other makers', a part of a word, a folder, nothing.
    None: "anthropic/claude-2.1 groq/openai/gpt-oss-300b huggingface/EleutherAI/gpt-j-6b huggingface/my/noclaude-9 "
    "anthropic/claude-9/mine ollama_chat/olmo-2 ",
}


@pytest.mark.parametrize(("model", "nearest"), [*each_of(NEAREST)])
def test_a_model_takes_the_facts_of_the_newest_of_its_family_that_is_not_newer(model: str, nearest: str | None) -> None:
    for listed in (LISTED, reversed(LISTED)):
        assert next(iter(relatives(model, listed)), None) == nearest
    assert bool(family(model)) is (nearest is not None or model == "anthropic/claude-2.1")


@given(st.text() | st.from_regex(r"(?:claude|gpt|gemini|o)-?[\d.@:-]*[a-z]*", fullmatch=True))
def test_any_text_may_be_a_name(name: str) -> None:
    assert set(relatives(name, (*LISTED, name))) <= {*LISTED, name}
