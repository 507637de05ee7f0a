"""``chorus --private`` and ``chorus ask --private`` without a terminal: their arguments, their bugs, their traces."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest

from chorus_cli.app import App, Options, opened
from chorus_cli.attachments.files.attachments import AttachmentMemory
from chorus_cli.chat import _Terminal
from chorus_cli.core.errors import AttachmentError, CommandError, HomeError
from chorus_cli.machine.bug_report import report_bug
from chorus_cli.machine.paths import Paths
from chorus_cli.personas.service.personas import Personas
from chorus_cli.run_storage import forgotten
from chorus_cli.storage.sqlite import IN_MEMORY, Sqlite
from chorus_cli.storage.store import Store
from chorus_cli.subcommands.exit_codes import BUG
from chorus_cli.terminal.screen.output import Screen
from chorus_cli.terminal.screen.painted_rows import Progress
from tests.attached_files import FILES
from tests.loopback_providers import recording
from tests.storage.database import note, notes
from tests.terminal.driver import Home
from tests.test_bugs import main_with_a_bug
from tests.world import World

WORD = "xyzzy-canary-0451"


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.lstat()) for path in folder.rglob("*"))
    return {str(path): (status.st_size, status.st_mtime_ns) for path, status in found}


def test_a_private_question_is_answered_and_leaves_a_new_machine_as_it_is(home: Home) -> None:
    asked = home.run("ask", "--private", f"I am {WORD}")
    assert (asked.code, asked.errors) == (0, "")
    assert WORD in asked.output
    assert not home.path.exists()


def test_a_private_question_holds_nothing_of_the_log_but_the_personas_prompt(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, photo = home.path / "personas" / "chorus", home.path / "photo.png"
    folder.mkdir(parents=True)
    (folder / "system.jsonc").write_text("{}")
    (folder / "prompt.md").write_text("Be brief, please.")
    photo.write_bytes(FILES["photo.png"])
    with recording() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        assert home.run("ask", "/remember Nenya").code == 0
        assert home.run("ask", "-c", "what is public?").code == 0
        before = tree(home.path)
        assert home.run("--private", "ask", "-a", str(photo), WORD).code == 0
    assert tree(home.path) == before
    request = str(server.bodies[-1])
    assert "Be brief, please." in request
    assert "image_url" in request
    assert "what is public?" in str(server.bodies[-2])
    assert "what is public?" not in request
    assert "Nenya" not in request


def test_in_a_private_question_a_command_is_carried_out_and_another_private_chat_is_not_begun(home: Home) -> None:
    assert "Context window set to 24h" in home.run("ask", "--private", "/context 24h").output
    refused = home.run("ask", "/private")
    assert refused.code == 1
    assert "chorus ask --private TEXT" in refused.errors
    assert home.run("ask", "--private", "/backup").code == 1


def test_an_interrupted_restore_is_left_to_a_start_that_may_write(home: Home) -> None:
    (home.path / ".restoring").mkdir(parents=True)
    refused = home.run("ask", "--private", "hello")
    assert refused.code == 1
    assert "Start chorus once without --private" in refused.errors
    assert [path.name for path in home.path.iterdir()] == [".restoring"]


def test_a_bug_in_a_private_run_leaves_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main_with_a_bug(tmp_path / "home", "--private", "ask", "/status")
    told = capsys.readouterr().err
    assert code == BUG
    assert "ValueError in test_bugs.py, line " in told
    assert "a bug made for a test" not in told
    assert not (tmp_path / "home").exists()


class BrokenTerminal(_Terminal):
    async def chat(self, options: Options, typed_early: str = "", outer: App | None = None) -> None:
        raise ValueError(f"{options.persona} {typed_early} {outer} {WORD}")


async def test_a_bug_that_ends_a_private_chat_is_a_sentence_to_the_chat_around_it(tmp_path: Path) -> None:
    """Else that would write the traceback, which may quote the private one."""
    environment, screen = {"CHORUS_HOME": str(tmp_path)}, Screen(StringIO(), {})
    terminal = BrokenTerminal(environment, screen, lambda: Progress(screen))
    async with opened(Options(), environment) as app:
        begin = terminal._privacy(Options(), app, None).begin
        assert begin is not None
        with pytest.raises(CommandError) as told:
            await begin(app.current.target())
    assert "ValueError in test_private.py" in str(told.value)
    assert WORD not in str(told.value)


def test_the_places_of_a_private_run_are_not_on_the_disk(tmp_path: Path) -> None:
    places = Paths(tmp_path / "data", tmp_path / "config", tmp_path / "state")
    with forgotten(places, {}) as storage:
        assert storage.bugs is None
        assert "That is a bug in Chorus (ValueError in ?" in report_bug(storage.bugs, ValueError(WORD), {})
        assert storage.rescue(datetime.now(UTC), {"content": WORD}) is None
        storage.open_threads.announce("chorus", 1)
        assert not storage.open_threads.is_shared("chorus", 1)
        assert (storage.is_alive(storage.run), storage.is_alive("another")) == (True, False)
    assert tree(tmp_path) == {}


async def test_a_log_in_memory_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(Sqlite(IN_MEMORY))
    await store.open()
    await store.write(note, "secret")
    assert await store.read(notes) == ["secret"]
    assert await store.read(lambda connection: connection.execute("PRAGMA temp_store").fetchone()) == (2,)
    await store.close()
    assert tree(tmp_path) == {}


def test_attachments_in_memory_are_those_that_were_stored() -> None:
    memory = AttachmentMemory()
    digest = memory.store(b"secret")
    assert memory.read(digest) == b"secret"
    assert (memory.has(digest), memory.has("0" * 64)) == (True, False)
    with pytest.raises(AttachmentError):
        memory.read("0" * 64)


async def test_settings_of_a_private_chat_are_changed_in_a_copy(world: World, tmp_path: Path) -> None:
    world.configure('{"temperature": 0.2} // mine')
    copies = tmp_path / "in memory"
    personas = Personas(world.personas.folder, world.personas.config_file, copies=lambda: copies)
    settings = replace(world.persona_admin, personas=personas)
    await settings.set("chorus", "temperature", 0.7)
    await settings.set("chorus", "context_hours", 24)
    assert (personas.load("chorus").settings.temperature, personas.load("chorus").settings.context_hours) == (0.7, 24)
    assert world.settings_text() == '{"temperature": 0.2} // mine'
    assert world.personas.load("chorus").settings.temperature == 0.2
    assert personas.settings_path("chorus").is_relative_to(copies)


async def test_without_a_place_for_copies_settings_are_not_changed(world: World) -> None:
    def nowhere() -> Path:
        raise HomeError("nowhere")

    world.configure("{}")
    personas = Personas(world.personas.folder, world.personas.config_file, copies=nowhere)
    with pytest.raises(HomeError):
        await replace(world.persona_admin, personas=personas).set("chorus", "temperature", 0.7)
    assert world.settings_text() == "{}"
