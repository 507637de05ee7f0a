"""The program in an environment with all that it requires but litellm: what works, and what is refused."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.loopback_providers import recording
from tests.loopback_server import Asked, runner
from tests.models.providers.fault_server import DONE, chunk, event
from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import Home

ROOT = Path(__file__).parents[1]
KEY = "sk-test-0123456789abcdef"


def required() -> Iterator[Requirement]:
    """Yield what pip would install with Chorus, but for litellm and what only litellm requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [each for each in map(Requirement, project["dependencies"]) if each.name != "litellm"]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        yield wanted
        for inner in map(Requirement, metadata.requires(wanted.name) or ()):
            extras = ({"extra": extra} for extra in ("", *wanted.extras))
            if str(inner) not in seen and (inner.marker is None or any(map(inner.marker.evaluate, extras))):
                seen.add(str(inner))
                waiting.append(inner)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    for library in map(metadata.distribution, {each.name for each in required()}):
        for name in {file.parts[0] for file in library.files or ()} - {".."}:
            if not (folder / name).exists():
                (folder / name).symlink_to(str(library.locate_file(name)))
    assert not (folder / "litellm").exists()
    return folder


def chorus(home: Home, bare: Path, *arguments: str, **variables: str) -> Outcome:
    """Run the program without the packages of this environment."""
    environment = {**home.environment, "PYTHONPATH": f"{ROOT}:{bare}", **variables}
    return finished([sys.executable, "-S", "-m", "chorus_cli", *arguments], environment)


def test_eliza_answers_and_only_the_models_of_litellm_are_refused(home: Home, bare: Path) -> None:
    assert "unhappy" in chorus(home, bare, "ask", "I am unhappy").output
    model = "cohere_chat/command-r-08-2024"
    refused = chorus(home, bare, "ask", "--model", model, "Hello", COHERE_API_KEY=KEY)
    assert (refused.code, refused.output) == (1, "")
    command = f"python3 -m pip --python {sys.executable} install litellm."
    assert refused.errors.startswith(f"{model} needs the package litellm. Install it with: {command} Your ")
    unknown = chorus(home, bare, "ask", "--model", "nosuch/x", "Hello")
    assert (unknown.code, "Chorus does not know the model nosuch/x." in unknown.errors) == (1, True)
    doubted = chorus(home, bare, "model", "azure/gpt-4o")
    assert "azure/gpt-4o needs the package litellm." in doubted.output
    examined = json.loads(chorus(home, bare, "doctor", "--json", "--model", model, COHERE_API_KEY=KEY).output)
    told = {finding["subject"]: finding["sentence"] for finding in examined["findings"]}
    assert "not installed: litellm." in told["versions"]
    assert f"{model} needs the package litellm." in told["model"]


def test_the_wire_asks_tokens_are_counted_and_the_price_is_told(home: Home, bare: Path) -> None:
    with recording() as provider:
        asked = chorus(home, bare, "ask", "-c", "Hello", **provider.environment())
        assert (asked.code, asked.output, asked.errors) == (0, "seen.\n", "")
        told = json.loads(chorus(home, bare, "context", "--json", **provider.environment()).output)
        with_litellm = finished([*PROGRAM, "context", "--json"], home.environment | provider.environment())
        assert told == json.loads(with_litellm.output)
        assert told["limit"] == 128_000
        assert "costs about $0.0" in chorus(home, bare, "context", "all", **provider.environment()).output


CLAUDE = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Good day."}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)


def test_a_claude_and_a_model_of_ollama_answer(home: Home, bare: Path) -> None:
    received: list[Asked] = []

    def answer(asked: Asked) -> tuple[int, list[bytes]]:
        received.append(asked)
        shown = {"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}}
        replies = {
            "/v1/messages": [event(piece) for piece in CLAUDE],
            "/api/show": [json.dumps(shown).encode()],
            "/v1/chat/completions": [chunk("Hello from the llama."), chunk(finish_reason="stop"), DONE],
        }
        return 200, replies[asked.path]

    with runner(answer) as address:
        claude = {"CHORUS_MODEL": "anthropic/claude-haiku-4-5", "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": KEY}
        assert chorus(home, bare, "ask", "Hello", **claude).output == "Good day.\n"
        llama = {"CHORUS_MODEL": "ollama_chat/llama3.2", "OLLAMA_API_BASE": address}
        assert chorus(home, bare, "ask", "Hello", **llama).output == "Hello from the llama.\n"
        told = json.loads(chorus(home, bare, "context", "--json", **llama).output)
    assert told["limit"] == 4096
    (asked,) = (each.body for each in received if each.path == "/v1/chat/completions")
    assert (asked["model"], asked["messages"][-1]["content"]) == ("llama3.2", "Hello")
