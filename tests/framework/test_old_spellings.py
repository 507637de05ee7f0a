"""Every spelling that the help listed before it listed one of each command is still accepted."""

from __future__ import annotations

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.framework.command_line import resolve
from tests.framework.test_typed_lines import NOW

SPELLINGS = """
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


@pytest.mark.parametrize("line", SPELLINGS.replace("\n", " ").strip().split(" | "))
def test_an_old_spelling_is_accepted(line: str) -> None:
    assert resolve(registry(), line, NOW).command.path.startswith("/")
