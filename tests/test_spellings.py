"""Every documented spelling of a command works, also an older one; scripts and the manual leave out no command."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chorus_cli import __version__
from chorus_cli.catalogue import registry
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.help import screen as help_screen
from chorus_cli.framework.registry import Command
from chorus_cli.services import Services
from chorus_cli.subcommands import shell_files
from chorus_cli.subcommands.command_line import SHELLS, parsed, parser
from tests.framework.test_typed_lines import NOW
from tests.imports.rules.exports import chatgpt, chatgpt_node
from tests.terminal.command import PROGRAM, Outcome, finished
from tests.terminal.driver import Home

PRINTED = {
    "Context window: 8h (default: 8h)": ("context", "context --persona frodo", "--model chorus/eliza context"),
    "Context window set to 16h": ("context +8h", "context add 8h"),
    "Context window set to 4h": ("context -4h", "--persona chorus context -4h"),
    "Human: hello ring": ("log", "log --persona chorus --thread 1 --since 1h -n 9 --thoughts", "--persona chorus log"),
    "Chorus, thread #1": (
        *("search ring", "search hello ring", "search 'hello ring'", "search rin* --since 1h"),
        *("search --since '2 days' ring", "search ring --thoughts", "search ring --persona chorus"),
        "search --persona chorus ring",
    ),
    "No replies with known token counts": ("cost", "cost --by persona --persona chorus"),
    "No replies with known token counts since": ("cost --since 7d --by day",),
    "Memory of Chorus": ("memory", "memory --persona chorus"),
    "Frodo": ("personas",),
    "Found 1 conversation, 1 message": (
        *("import chats.json --dry-run", "import --dry-run chats.json", "import chats.json"),
    ),
    "Found 2 conversations": ("import chats.json notes.json --persona frodo --timezone Europe/Berlin --dry-run",),
    "Exported 1 conversation with 2 messages to": (
        *("export --all OUT", "export --all OUT --format jsonl --persona chorus"),
    ),
    "Nothing was purged.": (
        *("purge message 1 --dry-run", "purge --dry-run message 1", "purge message 1 2 --dry-run --backups"),
        *("purge thread 1 --dry-run --persona chorus", "purge persona chorus --dry-run", "purge since 1h --dry-run"),
        *("purge search hello --dry-run", "purge search 'hello ring' --dry-run --persona chorus"),
    ),
    "nothing was purged": ("purge since 2h until 1h --dry-run", "purge search nonesuch --yes"),
    "1 message is purged, for good.": ("purge --yes message 1",),
    "2 messages are purged, for good.": ("purge --persona chorus --yes search hello",),
    " holds a purged message.": ("purge backups", "purge backups --yes"),
    "": ("purge backups --backups",),
    "Backed up": ("backup", "backup all.zip"),
    "Restored": ("restore daily.zip --yes", "restore --yes daily.zip"),
    "ok   versions": ("doctor",),
    '"$schema"': ("schema",),
    "chorus.db": ("paths",),
    "_shtab_chorus": ("completion bash",),
    "chorus ": ("--version",),
    "usage: chorus": ("--help",),
    "usage: chorus search": ("search --help",),
    "usage: chorus purge": ("purge --help",),
    "usage: chorus ask": ("ask --help",),
    ".": (
        *("ask hello", "ask --new hello", "--new ask hello", "ask --thread 1 hello", "--thread 1 ask hello"),
        *("ask --effort low hello", "ask --private hello", "--private ask hello"),
        "ask --persona frodo --model chorus/eliza hello",
    ),
    "Context window": ("ask /context",),
}
"""What is printed, at least in part, by each of some command lines."""

AS_JSON: dict[str, set[str] | dict[str, object]] = {
    "context": {"persona", "thread", "model", "limit", "budget", "tokens", "parts", "left_out", "messages", "memory"},
    "log": {"role", "content", "id", "thread", "timestamp", "status"},
    "search ring": {"results", "threads", "more"},
    "search ring --since 1h --thoughts --persona chorus": {"results"},
    "cost": {"lines", "total"},
    "cost --by thread --since 7d": {"lines", "total"},
    "memory": {*("items", "total_items", "total_tokens", "hot_count", "warm_count", "cold_count", "archived_count")},
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
        assert home.run("ask", "-c", text).code == 0
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


@pytest.mark.parametrize(("line", "printed"), [(line, printed) for printed, lines in PRINTED.items() for line in lines])
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
    assert declined.errors.endswith("Kept memory item #1: agree at a terminal, or add --yes.\n")
    assert "/undo brings it back." in outcome_of(home, "memory forget 1 --yes").output


@pytest.mark.parametrize("command", [*registry()], ids=lambda command: command.path)
def test_a_command_has_a_parser_with_json_unless_it_makes_sense_in_a_chat_alone(command: Command[Services]) -> None:
    words = command.path[1:].split()
    if not command.only_in_chat:
        assert parsed([*words, "--json"]).json
    else:
        with pytest.raises(SystemExit):
            parsed(words)


(COMMANDS,) = (
    tuple(action.choices)
    for action in parser()._actions
    if isinstance(action, argparse._SubParsersAction) and action.choices
)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_subcommand_and_asks_for_the_personas(shell: str) -> None:
    script = shell_files.completion_script(shell)
    assert [command for command in COMMANDS if command not in script] == []
    assert "--since" in script
    assert "chorus personas --json" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        *(("chorus sea", "search"), ("chorus completion f", "fish"), ("chorus log --si", "--since")),
        ("chorus import hosti", "hostile.json"),
        ("chorus import hostile.json --dry-run hosti", "hostile.json"),
        *(("chorus ask -a odo", "odometer.png"), ("chorus export --all ol", "old"), ("chorus --persona mi", "mira")),
        ("chorus ask --persona mi", "mira"),
    ],
)
def test_bash_completes_commands_options_choices_files_folders_and_personas(
    tmp_path: Path, typed: str, completed: str
) -> None:
    personas = 'chorus() { printf \'  {\\n    "persona": "mira",\\n    "name": "Mira"\\n\'; }\n'
    (tmp_path / "script").write_text(shell_files.completion_script("bash") + personas)
    (tmp_path / "old").mkdir()
    for name in ("hostile.json", "odometer.png", "olive.txt"):
        (tmp_path / name).touch()
    words = f"COMP_WORDS=({typed}); COMP_CWORD={len(typed.split()) - 1}"
    line = f'source ./script; {words}; _shtab_chorus; echo "${{COMPREPLY[@]}}"'
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout.split() == [completed]


@pytest.mark.parametrize(
    ("shell", "lines"),
    [
        ("bash", ["complete -o bashdefault -F _shtab_chorus chorus chorus-chat"]),
        ("zsh", ["#compdef chorus chorus-chat", "  compdef _shtab_chorus -N chorus chorus-chat"]),
        ("fish", ["complete -c chorus-chat -w chorus"]),
    ],
)
def test_the_second_name_of_the_program_is_completed_too(shell: str, lines: list[str]) -> None:
    assert [line for line in shell_files.completion_script(shell).splitlines() if "chorus-chat" in line] == lines


def test_the_manual_page_has_every_subcommand_and_the_screen_of_the_help() -> None:
    page = shell_files.manual_page()
    assert f"chorus {__version__}" in page
    assert "chorus \\- " in page
    assert [command for command in COMMANDS if f"chorus {command}" not in page] == []
    lines = {line.removeprefix("\\&").replace("\\-", "-") for line in page.splitlines()}
    assert {*help_screen(registry()).splitlines()} <= lines


def test_the_script_of_a_shell_is_printed_and_another_shell_refused(tmp_path: Path) -> None:
    assert set(shell_files.PLACES) == set(SHELLS)
    home = Home(tmp_path)
    outcome = home.run("completion", "bash")
    assert (outcome.code, outcome.errors) == (0, "")
    assert outcome.output == shell_files.completion_script("bash")
    assert home.run("completion", "cmd").code == 2


OLD_SPELLINGS = """
/context | /context why | /why | /context set 24h | /context 24h | /context add 8h | /context sub 4h |
/context reset | /context default | /context clear | /new | /clear | /context undo | /context undo 3 | /context redo
| /context redo 3 | /context ops | /context at 2h | /context edit | /context edit 24h | /context compact |
/context compact what we decided about the bridge | /compact | /compact what we decided about the bridge |
/context summary | /context summary edit | /context save | /context save auth refactor, don't lose this |
/context history | /context history 2 | /context show 2026-02-12_auth-refactor | /context restore |
/context restore 2026-02-12_auth-refactor | /undo | /redo | /retry | /retry chorus/eliza |
/remember call the plumber on Monday | /editor | /bg Write a long story about a lighthouse. | /set |
/set temperature 0.2 | /model | /model chorus/eliza | /search ring | /thoughts | /cost | /cost 7d by day | /copy |
/copy code | /export | /export ~/notes/rivendell.md | /import ~/Downloads/export.zip | /private | /private off |
/status | /help | /help context set | /? | /? context set | /quit | /exit | /q | /pin | /pin 12 | /unpin 12 |
/memory | /memory stats | /mem | /mem stats | /memory list | /memory list warm | /mem list | /mem list warm |
/memory show 3 | /mem show 3 | /memory add task call the plumber | /mem add task call the plumber | /memory edit 3 |
/mem edit 3 | /memory pin 3 | /mem pin 3 | /memory unpin 3 | /mem unpin 3 | /memory forget 3 | /mem forget 3 |
/memory import requirements.md | /mem import requirements.md | /memory flash | /memory flash --force | /mem flash |
/mem flash --force | /memory checkpoints | /mem checkpoints | /memory restore 3 | /mem restore 3 | /persona |
/persona list | /p | /p list | /personas | /persona switch frodo | /persona frodo | /p switch frodo | /p frodo |
/persona new Ada | /p new Ada | /persona edit | /persona edit frodo | /p edit | /p edit frodo | /persona info |
/persona info frodo | /p info | /p info frodo | /persona archive | /persona archive frodo | /p archive |
/p archive frodo | /persona unarchive frodo | /p unarchive frodo | /persona delete frodo | /p delete frodo |
/persona import seraphina.png | /p import seraphina.png | /persona greeting | /persona greeting 2 | /p greeting |
/p greeting 2 | /persona export | /persona export frodo frodo.json | /p export | /p export frodo frodo.json |
/thread | /thread all | /thread list | /thread list all | /t | /t all | /t list | /t list all | /thread switch 3 |
/thread 3 | /t switch 3 | /t 3 | /thread new | /thread new The trip to Rome | /t new | /t new The trip to Rome |
/thread fork | /thread fork 12 | /t fork | /t fork 12 | /thread rename | /thread rename The trip to Rome | /t rename
| /t rename The trip to Rome | /thread kill 3 | /thread close 3 | /t kill 3 | /t close 3 | /thread history |
/thread history 3 | /t history | /t history 3 | /jobs run pytest -q | /run pytest -q | /jobs | /jobs list |
/jobs kill 1 | /jobs log 1 | /settings | /settings list | /settings show context_hours | /settings context_hours |
/settings set context_hours 24 | /settings unset temperature | /settings edit | /attach | /attach list |
/attach add photo.png | /attach photo.png | /attach clear | /attach paste | /paste | /rescue backup |
/rescue backup /media/stick/chorus.zip | /backup | /backup /media/stick/chorus.zip | /rescue | /rescue list |
/rescue keep | /rescue discard | /purge message 12 | /purge thread 3 | /purge persona Frodo | /purge since 1h |
/purge search "red house" --dry-run | /purge backups
"""
"""Each name of each command of that time, with an argument where there was one in its examples."""


@pytest.mark.parametrize("line", OLD_SPELLINGS.replace("\n", " ").strip().split(" | "))
def test_an_old_spelling_is_accepted(line: str) -> None:
    assert resolve(registry(), line, NOW).command.path.startswith("/")
