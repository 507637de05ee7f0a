"""Every spelling of a command of the shell that was ever documented goes on working."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.subcommands.command_line import parsed
from tests.terminal.driver import Home

if TYPE_CHECKING:
    from pathlib import Path

CHATGPT = [
    {
        "title": "Rome",
        "create_time": 1735725600,
        "current_node": "q",
        "mapping": {
            "r": {"id": "r", "message": None, "parent": None, "children": ["q"]},
            "q": {
                "id": "q",
                "parent": "r",
                "children": [],
                "message": {
                    "id": "q",
                    "author": {"role": "user"},
                    "create_time": 1735725600,
                    "content": {"content_type": "text", "parts": ["Where is Latium?"]},
                },
            },
        },
    }
]

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

AS_JSON = {
    "context": {"persona", "thread", "model", "limit", "budget", "tokens", "parts", "left_out", "messages", "memory"},
    "search ring": {"results", "threads", "more"},
    "search ring --since 1h --thoughts --persona chorus": {"results"},
    "cost": {"lines", "total"},
    "cost --by thread --since 7d": {"lines", "total"},
    "memory": {"items", "total_items"},
    "import chats.json --dry-run": {"dry_run", "conversations", "new_messages", "cards"},
    "export --all OUT": {"conversations", "messages", "folder"},
    "purge message 1 --dry-run": {"messages", "purged"},
    "purge message 1 --yes": {"messages", "purged", "backups"},
    "purge backups": {"backups"},
    "backup": {"file", "format"},
    "doctor": {"well", "findings"},
    "ask hello": {"reply", "usage", "model", "thread", "seconds"},
}
"""Command lines whose ``--json`` prints an object, with some of its names."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for text in ("hello ring", "/remember a canary"):
        assert home.run("ask", text).code == 0
    return home


@pytest.fixture
def home(tmp_path: Path, template: Home) -> Home:
    home = Home(shutil.copytree(template.path, tmp_path / "home"))
    (tmp_path / "chats.json").write_text(json.dumps(CHATGPT))
    (tmp_path / "notes.json").write_text(json.dumps(CHATGPT).replace("Latium", "Roma").replace('"q"', '"z"'))
    return home


def outcome_of(home: Home, folder: Path, line: str) -> tuple[int, str, str]:
    if "daily.zip" in line:
        assert home.run("backup", str(folder / "daily.zip")).code == 0
    line = line.replace("OUT", str(folder / "out"))
    outcome = home.shell(f"cd {folder}; chorus {line}")
    return outcome.code, outcome.output, outcome.errors


@pytest.mark.parametrize(("line", "printed"), PRINTED.items(), ids=PRINTED)
def test_a_spelling_goes_on_working(home: Home, tmp_path: Path, line: str, printed: str) -> None:
    code, output, errors = outcome_of(home, tmp_path, line)
    assert code == 0 or line == "doctor", errors
    assert printed in output


@pytest.mark.parametrize(("line", "names"), AS_JSON.items(), ids=AS_JSON)
def test_a_spelling_goes_on_printing_its_json(home: Home, tmp_path: Path, line: str, names: set[str]) -> None:
    words = line.partition(" ")
    code, output, errors = outcome_of(home, tmp_path, f"{words[0]} --json {words[2]}")
    assert code == 0 or line == "doctor", errors
    assert names <= json.loads(output).keys()


def test_lists_go_on_being_printed_as_json(home: Home, tmp_path: Path) -> None:
    _, log, _ = outcome_of(home, tmp_path, "log --json")
    assert [row["role"] for row in json.loads(log)] == ["user", "assistant"]
    _, personas, _ = outcome_of(home, tmp_path, "personas --json")
    assert {"chorus", "frodo"} <= {each["persona"] for each in json.loads(personas)}


ALSO = {
    "memory list": {"id", "content", "tier"},
    "thread list": {"number", "title", "state", "current"},
    "thread": {"number"},
    "thread list all": {"number"},
    "context history": set(),
    "context ops": set(),
    "settings": {"key", "value", "source", "default"},
    "persona list": {"persona", "name"},
    "thread history 1 --thoughts": {"role", "content"},
}
"""Commands of the chat whose ``--json`` prints a list, with some names of its first entry."""


@pytest.mark.parametrize(("line", "names"), ALSO.items(), ids=ALSO)
def test_a_list_of_the_chat_is_printed_as_json(home: Home, tmp_path: Path, line: str, names: set[str]) -> None:
    code, output, errors = outcome_of(home, tmp_path, f"{line} --json")
    assert (code, errors) == (0, "")
    entries = json.loads(output)
    assert isinstance(entries, list)
    assert names <= ({*entries[0]} if entries else set())


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("persona info frodo", "persona", "frodo"),
        ("context why", "thread", 1),
        ("why --persona frodo", "persona", "frodo"),
        ("memory show 1", "content", "a canary"),
        ("settings context_hours", "value", 8),
        ("status --thread 1", "thread", "1"),
        ("retry", "model", "chorus/eliza"),
        ("context 24h", "text", "Context window set to 24h"),
        ("remember buy bread", "text", "Remembered #2"),
    ],
)
def test_a_command_of_the_chat_prints_its_values(
    home: Home, tmp_path: Path, line: str, name: str, value: str | int
) -> None:
    code, output, errors = outcome_of(home, tmp_path, f"{line} --json")
    assert code == 0, errors
    found = json.loads(output)[name]
    assert found.startswith(value) if isinstance(value, str) else found == value


def test_a_question_of_a_command_is_answered_by_yes_or_declined(home: Home, tmp_path: Path) -> None:
    declined = outcome_of(home, tmp_path, "memory forget 1")
    assert declined[:2] == (1, "")
    assert declined[2].endswith("Memory item #1 stays: agree at a terminal, or add --yes.\n")
    code, output, _ = outcome_of(home, tmp_path, "memory forget 1 --yes")
    assert (code, "/undo brings it back." in output) == (0, True)


@pytest.mark.parametrize("name", [command.path[1:] for command in registry() if not command.only_in_chat])
def test_every_command_but_those_of_the_chat_alone_has_a_parser_with_json(name: str) -> None:
    assert parsed([*name.split(), "--json"]).json


@pytest.mark.parametrize("name", [command.path[1:] for command in registry() if command.only_in_chat])
def test_what_makes_sense_in_a_chat_alone_is_refused(name: str) -> None:
    with pytest.raises(SystemExit):
        parsed(name.split())
