"""Every spelling of a command of the shell that was ever documented goes on working."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.framework.registry import Command
from chorus_cli.services import Services
from chorus_cli.subcommands.command_line import parsed
from tests.imports.rules.exports import chatgpt, chatgpt_node
from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import Home

PRINTED = {
    "context": "Context window: 8h (default: 8h)",
    "context --persona frodo": "Context window: 8h (default: 8h)",
    "--model chorus/eliza context": "Context window: 8h (default: 8h)",
    "log": "Human: hello ring",
    "log --persona chorus --thread 1 --since 1h -n 9 --thoughts": "Human: hello ring",
    "--persona chorus log": "Human: hello ring",
    "search ring": "Chorus, thread #1",
    "search hello ring": "Chorus, thread #1",
    "search 'hello ring'": "Chorus, thread #1",
    "search rin* --since 1h": "Chorus, thread #1",
    "search --since '2 days' ring": "Chorus, thread #1",
    "search ring --thoughts": "Chorus, thread #1",
    "search ring --persona chorus": "Chorus, thread #1",
    "search --persona chorus ring": "Chorus, thread #1",
    "cost": "No reply with a known number of tokens",
    "cost --since 7d --by day": "No reply with a known number of tokens since",
    "cost --by persona --persona chorus": "No reply with a known number of tokens",
    "memory": "Memory of Chorus",
    "memory --persona chorus": "Memory of Chorus",
    "personas": "Frodo",
    "import chats.json --dry-run": "Found 1 conversation, 1 message",
    "import --dry-run chats.json": "Found 1 conversation, 1 message",
    "import chats.json notes.json --persona frodo --timezone Europe/Berlin --dry-run": "Found 2 conversations",
    "import chats.json": "Found 1 conversation, 1 message",
    "export --all OUT": "Exported 1 conversation with 2 messages to",
    "export --all OUT --format jsonl --persona chorus": "Exported 1 conversation with 2 messages to",
    "purge message 1 --dry-run": "Nothing was purged.",
    "purge --dry-run message 1": "Nothing was purged.",
    "purge message 1 2 --dry-run --backups": "Nothing was purged.",
    "purge thread 1 --dry-run --persona chorus": "Nothing was purged.",
    "purge persona chorus --dry-run": "Nothing was purged.",
    "purge since 1h --dry-run": "Nothing was purged.",
    "purge since 2h until 1h --dry-run": "nothing was purged",
    "purge search hello --dry-run": "Nothing was purged.",
    "purge search 'hello ring' --dry-run --persona chorus": "Nothing was purged.",
    "purge --yes message 1": "1 message is purged, for good.",
    "purge --persona chorus --yes search hello": "2 messages are purged, for good.",
    "purge search nonesuch --yes": "nothing was purged",
    "purge backups": "No backup holds a purged message.",
    "purge backups --yes": "No backup holds a purged message.",
    "purge backups --backups": "",
    "backup": "Backed up",
    "backup all.zip": "Backed up",
    "restore daily.zip --yes": "Restored",
    "restore --yes daily.zip": "Restored",
    "doctor": "ok   versions",
    "schema": '"$schema"',
    "paths": "chorus.db",
    "completion bash": "_shtab_chorus",
    "--version": "chorus ",
    "--help": "usage: chorus",
    "search --help": "usage: chorus search",
    "purge --help": "usage: chorus purge",
    "ask --help": "usage: chorus ask",
    "ask hello": ".",
    "ask --new hello": ".",
    "--new ask hello": ".",
    "ask --thread 1 hello": ".",
    "--thread 1 ask hello": ".",
    "ask --effort low hello": ".",
    "ask --private hello": ".",
    "--private ask hello": ".",
    "ask /context": "Context window",
    "ask --persona frodo --model chorus/eliza hello": ".",
}
"""Command lines with a part of what they print."""

AS_JSON: dict[str, set[str] | dict[str, object]] = {
    "context": {"persona", "thread", "model", "limit", "budget", "tokens", "parts", "left_out", "messages", "memory"},
    "log": {"role", "content"},
    "search ring": {"results", "threads", "more"},
    "search ring --since 1h --thoughts --persona chorus": {"results"},
    "cost": {"lines", "total"},
    "cost --by thread --since 7d": {"lines", "total"},
    "memory": {"items", "total_items"},
    "personas": {"persona", "name"},
    "import chats.json --dry-run": {"dry_run", "conversations", "new_messages", "cards"},
    "export --all OUT": {"conversations", "messages", "folder"},
    "purge message 1 --dry-run": {"messages", "purged"},
    "purge message 1 --yes": {"messages", "purged", "backups"},
    "purge backups": {"backups"},
    "backup": {"file", "format"},
    "doctor": {"well", "findings"},
    "ask hello": {"reply", "usage", "model", "thread", "seconds"},
    "memory list": {"id", "content", "tier"},
    "thread list": {"number", "title", "state", "current"},
    "thread": {"number"},
    "thread list all": {"number"},
    "context history": set(),
    "context ops": set(),
    "settings": {"key", "value", "source", "default"},
    "persona list": {"persona", "name"},
    "thread history 1 --thoughts": {"role", "content"},
    "persona info frodo": {"persona": "frodo"},
    "context why": {"thread": 1},
    "why --persona frodo": {"persona": "frodo"},
    "memory show 1": {"content": "a canary"},
    "settings context_hours": {"value": 8},
    "status --thread 1": {"thread": "1"},
    "retry": {"model": "chorus/eliza"},
    "context 24h": {"text": "Context window set to 24h"},
    "remember buy bread": {"text": "Remembered #2"},
}
"""Command lines with some names, or values, of what their ``--json`` prints: an object, or a list of them."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for text in ("hello ring", "/remember a canary"):
        assert home.run("ask", text).code == 0
    return home


@pytest.fixture
def home(tmp_path: Path, home: Home) -> Home:
    for name, question in (("chats", "Where is Latium?"), ("notes", "Where is Roma?")):
        talk = chatgpt(chatgpt_node(name, None, "user", question), id=name, conversation_id=name)
        (tmp_path / f"{name}.json").write_text(json.dumps([talk]))
    return home


def outcome_of(home: Home, line: str) -> Outcome:
    folder = home.path.parent
    if "daily.zip" in line:
        assert home.run("backup", str(folder / "daily.zip")).code == 0
    words = shlex.split(line.replace("OUT", str(folder / "out")))
    outcome = finished([*PROGRAM, *words], home.environment, folder=folder)
    assert outcome.code == 0 or words[0] == "doctor", outcome.errors
    return outcome


@pytest.mark.parametrize(("line", "printed"), PRINTED.items(), ids=PRINTED)
def test_a_spelling_goes_on_working(home: Home, line: str, printed: str) -> None:
    assert printed in outcome_of(home, line).output


@pytest.mark.parametrize(("line", "promised"), AS_JSON.items(), ids=AS_JSON)
def test_a_spelling_goes_on_printing_its_json(home: Home, line: str, promised: set[str] | dict[str, object]) -> None:
    found: Any = json.loads(outcome_of(home, f"{line} --json").output)
    first = found if isinstance(found, dict) else {**found[0]} if found else {}
    assert {*promised} <= first.keys()
    if isinstance(promised, dict):
        ((name, value),) = promised.items()
        assert str(first[name]).startswith(str(value))


def test_a_question_of_a_command_is_answered_by_yes_or_declined(home: Home) -> None:
    declined = home.run("memory", "forget", "1")
    assert (declined.code, declined.output) == (1, "")
    assert declined.errors.endswith("Memory item #1 stays: agree at a terminal, or add --yes.\n")
    assert "/undo brings it back." in outcome_of(home, "memory forget 1 --yes").output


@pytest.mark.parametrize("command", [*registry()], ids=lambda command: command.path)
def test_a_command_has_a_parser_with_json_unless_it_makes_sense_in_a_chat_alone(command: Command[Services]) -> None:
    words = command.path[1:].split()
    if not command.only_in_chat:
        assert parsed([*words, "--json"]).json
    else:
        with pytest.raises(SystemExit):
            parsed(words)
