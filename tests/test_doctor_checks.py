"""What the doctor checks besides damage: the way to the model, rows without others, room, and each offer as JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.loopback_server import serving
from tests.terminal.command import PROGRAM, finished
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    assert home.run("ask", "hello").code == 0
    assert home.run("search", "hello").code == 0
    return home


@pytest.fixture
def home(tmp_path: Path, template: Home) -> Home:
    return Home(shutil.copytree(template.path, tmp_path / "home"))


def found(home: Home, subject: str, *options: str, **variables: str) -> dict[str, Any]:
    """Return the finding of the doctor about a subject."""
    outcome = finished([*PROGRAM, *options, "doctor", "--json"], {**home.environment, **variables})
    report = json.loads(outcome.output)
    assert outcome.code == (0 if report["well"] else 1)
    finding: dict[str, Any] = next(each for each in report["findings"] if each["subject"] == subject)
    return finding


NOWHERE = "http://127.0.0.1:1/v1"
KEY = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
MODELS = {
    "embedded": ("chorus/eliza", {}, "fine", "it needs no server"),
    "of an unreachable server": ("openai/m", {**KEY, "OPENAI_BASE_URL": NOWHERE}, "wrong", "127.0.0.1:1/v1 cannot be"),
    "without its key": ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_API_KEY": ""}, "wrong", "ANTHROPIC_API_KEY"),
    "of litellm alone": ("cohere/command-r", {"COHERE_API_KEY": "x" * 20}, "note", "litellm, which alone knows"),
}


@pytest.mark.parametrize(("model", "variables", "state", "sentence"), MODELS.values(), ids=MODELS)
def test_the_way_to_the_model_is_told(
    home: Home, model: str, variables: dict[str, str], state: str, sentence: str
) -> None:
    finding = found(home, "model", "--model", model, **variables)
    assert (finding["state"], finding["sentence"].startswith(f"{model} answers (")) == (state, True), finding
    assert sentence in finding["sentence"]


def test_a_server_that_can_be_reached_is_asked_nothing(home: Home) -> None:
    asked: list[object] = []

    def answer(body: dict[str, Any]) -> tuple[int, list[bytes]]:
        asked.append(body)
        return 200, []

    with serving(answer) as address:
        finding = found(home, "model", "--model", "openai/m", **KEY, OPENAI_BASE_URL=address)
    assert (finding["state"], asked) == ("fine", [])
    assert f"through the wire; {address} can be reached" in finding["sentence"]


def changed_text(home: Home) -> None:
    home.sql("UPDATE messages SET content = 'hello there' WHERE id = 1")


def damaged_index(home: Home) -> None:
    home.sql("UPDATE message_words_data SET block = zeroblob(length(block)) WHERE id > 10")


def open_to_all(home: Home) -> None:
    home.path.chmod(0o755)


def orphaned(home: Home) -> None:
    home.sql("DELETE FROM threads")


def empty(home: Home) -> None:
    (home.path / "chorus.db").write_bytes(b"")


OFFERS: dict[str, tuple[Callable[[Home], None], str | None]] = {
    "checksums": (changed_text, "checksums"),
    "index": (damaged_index, "index"),
    "permissions": (open_to_all, "permissions"),
    "log": (empty, "salvage"),
    "rows": (orphaned, "salvage"),
}


@pytest.mark.parametrize("subject", OFFERS)
def test_a_fault_is_told_to_programs_with_its_offer(home: Home, subject: str) -> None:
    break_, repair = OFFERS[subject]
    break_(home)
    finding = found(home, subject)
    assert (finding["state"], finding["mend"]) == ("wrong", repair)


def test_a_disk_without_room_is_told(home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    full = Home(home.path.with_name("full"))
    full.path.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(full.path)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("this system mounts nothing")
    try:
        shutil.copytree(home.path, full.path, dirs_exist_ok=True)
        finding = found(full, "disk")
    finally:
        subprocess.run(["umount", "-l", str(full.path)], check=True)
    assert (finding["state"], finding["mend"]) == ("wrong", None)
    assert "Make room there" in finding["sentence"]


def test_the_daily_sample_tells_of_a_message_that_is_not_as_written(home: Home) -> None:
    changed_text(home)
    with home.chat() as terminal:
        terminal.await_text("#1 is not as written. chorus doctor")
    with home.chat() as terminal:
        terminal.watch(4)
        assert "not as written" not in terminal.screen_text(), "it is told once a day"
