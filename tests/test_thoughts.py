"""Thoughts of models on their way through the real program: shown and found."""

from __future__ import annotations

import json
import re

import pytest

from tests.log.service.thinking_talk import parts_of
from tests.loopback_providers import calling
from tests.terminal.driver import Home

THOUGHT, SAID = "Two and two?\n\nIt must be four.", "Four of course."
HIDDEN = f"{THOUGHT}\nI am sure."
LINE = r"\[thought for [0-9.]+ s, [0-9]+ tokens"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home in which a model has thought before its reply."""
    home = Home(tmp_path_factory.mktemp("thinking") / "home")
    with calling() as provider, pytest.MonkeyPatch.context() as variables:
        variables.setenv("OPENAI_BASE_URL", provider.address)
        variables.setenv("OPENAI_API_KEY", "sk-invented")
        provider.say(f"<think>{THOUGHT}</think>{SAID}")
        assert home.run("--model", "openai/x", "ask", "-c", "What are two and two?").output == f"{SAID}\n"
    home.sql("UPDATE messages SET thought_parts = ? WHERE role = 'assistant'", parts_of(HIDDEN))
    return home


def test_the_log_says_how_long_a_model_thought_and_what_on_request(template: Home) -> None:
    assert re.search(rf"\] Chorus: {LINE}\]\n *{SAID}", template.run("log").output)
    shown = template.run("log", "--thoughts").output
    assert re.search(rf"\] Chorus: {LINE}:\n *Two and two\?\n\n *It must be four\.\]\n *{SAID}", shown), shown
    assert "It must be" not in template.run("log").output
    *_, told = json.loads(template.run("log", "--json").output)
    assert (told["thoughts"], told["thought_parts"]) == (THOUGHT, parts_of(HIDDEN))


def test_a_search_finds_them_on_request_only(template: Home) -> None:
    assert template.run("search", "must").code == 1
    found = template.run("search", "must", "--thoughts")
    assert (found.code, found.output.splitlines()[-1]) == (0, "Chorus: Two and two? It «must» be four.")
    assert found.output.splitlines()[0].endswith("  [thought]")
    (result,) = json.loads(template.run("search", "must", "--thoughts", "--json").output)["results"]
    assert result["in_thoughts"]
