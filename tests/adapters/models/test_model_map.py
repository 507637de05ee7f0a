"""Facts read from litellm's files: sizes, prices, the names of models and of providers."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from chorus_cli.adapters.models.litellm import library
from chorus_cli.adapters.models.model_map import ModelMap

if TYPE_CHECKING:
    from pathlib import Path

TAKES = {"supports_system_messages": True, "supports_sampling_params": False}
MODELS = {
    "sample_spec": {
        "litellm_provider": "one of many",
        "max_input_tokens": "the figure",
        "max_tokens": "the same",
        "mode": "one of: chat, embedding",
        "input_cost_per_token": 0.0,
    },
    "gpt-x": {
        "litellm_provider": "openai",
        "max_input_tokens": 100_000,
        "max_tokens": 4000,
        "mode": "chat",
        "input_cost_per_token": 2e-06,
    },
    "gpt-x-pro": {"litellm_provider": "openai", "mode": "responses", "input_cost_per_token": 1e-05},
    "unsure": {"litellm_provider": "openai", "max_tokens": 4096, "supports_prompt_caching": "yes"},
    "ft:gpt-x": {"litellm_provider": "openai", "max_tokens": 4000, "mode": "chat"},
    "claude-x": {
        "litellm_provider": "anthropic",
        "max_input_tokens": 200_000,
        "mode": "chat",
        "supports_prompt_caching": True,
    },
    "gemini/gem-x": {"litellm_provider": "gemini", "max_input_tokens": 1_000_000, "mode": "chat"},
    "gem-x": {"litellm_provider": "vertex_ai-language-models", "max_input_tokens": 900_000, "mode": "chat"},
    "deep-x": {"litellm_provider": "deepseek", "max_input_tokens": 64_000, "mode": "chat", **TAKES},
    "openai/old": {"litellm_provider": "openai", "mode": "chat"},
    "old": {"litellm_provider": "openai", "max_tokens": 4096, "mode": "chat", "input_cost_per_token": 1e-06},
    "together-up-to-4b": {"litellm_provider": "together_ai", "mode": "chat", "input_cost_per_token": 1e-07},
    "gone/model": {"litellm_provider": "gone", "max_tokens": 4096, "mode": "chat"},
    "free": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 0},
    "embedder": {
        "litellm_provider": "openai",
        "supports_prompt_caching": "yes",
        "max_input_tokens": 8000,
        "mode": "embedding",
    },
    "unsaid": {"litellm_provider": "openai", "max_input_tokens": None, "mode": "chat", "input_cost_per_token": None},
    "zero": {"litellm_provider": "openai", "max_input_tokens": 0, "input_cost_per_token": -1},
    "strange": {"litellm_provider": "openai", "input_cost_per_token": float("nan"), "max_tokens": 7},
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


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-x", 100_000),
        ("openai/gpt-x", 100_000),
        ("anthropic/claude-x", 200_000),
        ("gemini/gem-x", 1_000_000),
        ("vertex_ai/gem-x", 900_000),
        ("openai/old", 4096),
        ("anthropic/gpt-x", None),
        ("vert/gem-x", None),
        ("openrouter/anthropic/claude-x", None),
        ("/gpt-x", None),
        ("unsaid", None),
        ("zero", None),
        ("odd", None),
        ("sample_spec", None),
        ("", None),
    ],
)
def test_the_map_is_asked_by_the_name_and_by_the_name_without_its_provider(
    folder: Path, model: str, tokens: int | None
) -> None:
    assert ModelMap(folder).limit_tokens(model) == tokens


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("gpt-x", 2e-06),
        ("openai/gpt-x", 2e-06),
        ("openai/old", 1e-06),
        ("free", 0.0),
        ("anthropic/gpt-x", None),
        ("claude-x", None),
        ("unsaid", None),
        ("zero", None),
        ("strange", None),
        ("odd", None),
        ("nosuch", None),
    ],
)
def test_a_price_is_what_one_token_of_input_costs(folder: Path, model: str, cost: float | None) -> None:
    assert ModelMap(folder).input_cost(model) == cost


@pytest.mark.parametrize(
    ("model", "caches"),
    [
        ("claude-x", True),
        ("anthropic/claude-x", True),
        ("openai/claude-x", False),
        ("gpt-x", False),
        ("unsure", False),
        ("nosuch", False),
        ("odd", False),
    ],
)
def test_only_what_the_map_says_plainly_keeps_prompts(folder: Path, model: str, caches: bool) -> None:  # noqa: FBT001 - a table
    assert ModelMap(folder).caches_prompts(model) is caches


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("anthropic/claude-x", True),
        ("deep-x", False),
        ("deepseek/deep-x", False),
        ("deepseek/deep-of-tomorrow", True),
    ],
)
def test_a_model_takes_a_temperature_unless_the_map_denies_it(folder: Path, model: str, *, takes: bool) -> None:
    assert ModelMap(folder).takes_temperature(model) is takes


@pytest.mark.parametrize(
    ("model", "takes"),
    [("deepseek/deep-x", True), ("gemini/gem-x", False), ("gemini/gem-of-tomorrow", None), ("embedder", None)],
)
def test_a_listed_model_takes_system_messages_if_the_map_says_so(
    folder: Path, model: str, *, takes: bool | None
) -> None:
    assert ModelMap(folder).takes_system_messages(model) is takes


def test_the_names_are_what_can_chat_as_litellm_wants_it_typed(folder: Path) -> None:
    assert ModelMap(folder).names() == {
        "gpt-x",
        "openai/gpt-x",
        "gpt-x-pro",
        "openai/gpt-x-pro",
        "claude-x",
        "gemini/gem-x",
        "gem-x",
        "deepseek/deep-x",
        "openai/old",
        "old",
        "free",
        "openai/free",
        "unsaid",
        "openai/unsaid",
    }


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
def test_half_a_list_of_providers_counts_as_none_and_takes_no_name_away(
    folder: Path, name: str, content: bytes | None
) -> None:
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    model_map = ModelMap(folder)
    assert model_map.providers() == frozenset()
    assert {"gpt-x", "gone/model"} <= model_map.names()


def test_the_files_are_read_once_however_many_ask_at_once(folder: Path) -> None:
    model_map = ModelMap(folder)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(model_map.limit_tokens, ["gpt-x"] * 20)) == {100_000}
    for path in folder.rglob("*.json"):
        path.unlink()
    assert model_map.limit_tokens("claude-x") == 200_000
    assert "veniceai" in model_map.providers()


def facts(known: ModelMap, model: str) -> tuple[object, ...]:
    of_model = (known.limit_tokens, known.input_cost, known.output_tokens, known.caches_prompts, known.calls_functions)
    return tuple(each(model) for each in of_model)


def test_a_fact_looked_up_in_the_text_of_a_map_is_that_of_the_whole_map(folder: Path) -> None:
    whole = ModelMap(folder)
    path = folder / "model_prices_and_context_window_backup.json"
    path.write_text(json.dumps(MODELS, indent=4).replace('\n    "claude-x"', '\n"claude-x"'))
    for name in [*MODELS, *whole.names(), "gpt", 'gpt-x"', "nosuch", "max_tokens"]:
        assert facts(ModelMap(folder), name) == facts(whole, name)


def test_a_fact_looked_up_in_the_shipped_map_is_that_of_the_whole_map() -> None:
    looked_up, whole = ModelMap(), ModelMap()
    names = sorted(whole.names())
    assert looked_up._knowledge is None
    for name in [*names[::25], *(name for name in names if name.startswith("anthropic/"))]:
        assert facts(looked_up, name) == facts(whole, name), name
    assert looked_up._knowledge is None


def test_the_shipped_map_is_read_without_importing_litellm() -> None:
    program = (
        "import sys\n"
        "from chorus_cli.adapters.models.model_map import ModelMap\n"
        "shipped = ModelMap()\n"
        "print(shipped.limit_tokens('openai/gpt-4o'), shipped.limit_tokens('anthropic/claude-sonnet-4-5'))\n"
        "print(shipped.input_cost('gpt-4o'), len(shipped.names()) > 1000, 'lm_studio' in shipped.providers())\n"
        "assert 'litellm' not in sys.modules\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (finished.stdout, finished.stderr) == ("128000 200000\n2.5e-06 True True\n", "")


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
