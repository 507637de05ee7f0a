"""Changes of a persona's settings, the windows that the journal notes, and the models that are offered and doubted."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseBusyError, ModelNameError, PersonaError, SettingsError, StorageError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Window
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.personas import rows as persona_rows
from chorus_cli.personas.service.models import KnownModels, Models
from chorus_cli.personas.service.persona_admin import Change, state
from chorus_cli.settings.rules.schema import template
from chorus_cli.settings.rules.table import WINDOW_KEY, setting_of
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store
from tests.fakes import START, FakeClock, ScriptedModel
from tests.storage.database import of_sqlite
from tests.world import World, built

ME = "chorus"
TEXT = '// mine\n{\n  "temperature": 0.2, // calm\n  "mine": 1,\n}\n'


async def window_changes(world: World) -> list[Window]:
    acts = [entry.operation.act for entry in await world.journal.entries(world.current.target()) if entry.counts]
    return [act for act in acts if isinstance(act, Window)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("name", "Frodo"), ("aliases", ["Strider", "Ranger"]), ("description", "A hobbit, and more.")),
        *(("system_prompt", 'Say "mellon".'), ("model", "ollama/llama"), ("summary_model", "ollama/llama")),
        *(("temperature", 0.7), ("max_output_tokens", 100), ("context_hours", 24), ("context_token_limit", 2000)),
        *(("context_usage_threshold", 0.5), ("idle_minutes", 5), ("on_idle", "off"), ("clock", False)),
        *(("auto_memory", False), ("tools", False)),
    ],
)
async def test_what_is_set_holds_from_then_on_until_it_is_unset(world: World, key: str, value: JsonValue) -> None:
    world.configure('{ "mine": 1, /* last */ }')
    setting = setting_of(key)
    assert await world.persona_admin.set(ME, key, value) == Change(setting, None, value)
    assert state(world.current.target().persona, setting).value == value
    assert await world.persona_admin.set(ME, key, value) == Change(setting, value, value)
    assert await world.persona_admin.set(ME, key, None) == Change(setting, value, None)
    assert state(world.current.target().persona, setting).source == "default"
    assert await world.persona_admin.set(ME, key, None) == Change(setting, None, None)
    assert world.settings_text() == '{ "mine": 1, /* last */ }'


@pytest.mark.parametrize(
    ("key", "value"), [("name", "Sam"), ("aliases", ["me", "sam"]), ("aliases", ["[x]"]), ("context_hours", 500)]
)
async def test_a_name_that_is_taken_or_a_value_that_breaks_the_rules_is_refused(
    world: World, key: str, value: JsonValue
) -> None:
    (world.folder / "personas" / "frodo").mkdir()
    world.configure('{ "aliases": ["Sam"] }', "frodo")
    world.configure(TEXT)
    with pytest.raises((PersonaError, SettingsError)):
        await world.persona_admin.set(ME, key, value)
    opened = await world.persona_admin.open(ME)
    with pytest.raises((PersonaError, SettingsError)):
        await world.persona_admin.save(opened, json.dumps({key: value}))
    assert world.settings_text() == TEXT


async def test_a_broken_file_is_told_with_the_way_to_mend_it(world: World) -> None:
    world.configure('{ "temperature": }')
    for key in ("temperature", "context_hours"):
        with pytest.raises(SettingsError, match=r"system\.jsonc:1:18: expected a value: .* /settings edit opens"):
            await world.persona_admin.set(ME, key, 1)
        with pytest.raises(SettingsError, match=r"system\.jsonc:1:18: "):
            await world.persona_admin.set(ME, key, None)
    assert world.settings_text() == '{ "temperature": }'


async def test_the_byte_order_mark_stays_with_the_file_and_out_of_the_editor(world: World) -> None:
    world.configure("\ufeff{\r\n}\r\n")
    opened = await world.persona_admin.open(ME)
    assert opened.draft == "{\r\n}\r\n"
    for draft in ('{"tools": false}\r\n', '\ufeff{"tools": false}\r\n'):
        await world.persona_admin.save(opened, draft)
        assert world.personas.settings_path(ME).read_bytes().decode() == '\ufeff{"tools": false}\r\n'
        world.configure(opened.text)


@pytest.mark.parametrize("text", [None, "", " \n"])
async def test_where_there_are_no_settings_a_template_is_edited(world: World, text: str | None) -> None:
    if text is not None:
        world.configure(text)
    opened = await world.persona_admin.open(ME)
    assert opened.draft == template(ME)
    await world.persona_admin.save(opened, '{"tools": false}')
    assert world.settings_text() == '{"tools": false}'


async def test_a_window_that_is_edited_is_an_operation_too(world: World) -> None:
    world.configure('{ "context_hours": 12, "tools": true }')
    await world.persona_admin.save(await world.persona_admin.open(ME), '{ "context_hours": 24, "tools": true }')
    await world.persona_admin.save(await world.persona_admin.open(ME), '{ "context_hours": 24, "tools": false }')
    await world.persona_admin.save(await world.persona_admin.open(ME), '{ "tools": false }')
    assert await window_changes(world) == [Window(None, 12), Window(12, 24), Window(24, None)]
    await world.journal.undo(world.current.target(), None)
    await world.journal.undo(world.current.target(), None)
    assert world.settings_text() == '{ "tools": false, "context_hours": 12 }'


async def test_mending_a_broken_file_is_a_change_of_the_window_that_held_until_then(world: World) -> None:
    world.configure('{ "context_hours": 24,, }')
    opened = await world.persona_admin.open(ME)
    assert opened.draft == '{ "context_hours": 24,, }'
    assert await world.persona_admin.save(opened, '{ "context_hours": 24, }') == (
        Change(setting_of("context_hours"), None, 24),
    )
    assert world.personas.settings_path(ME).with_name("system.jsonc.bak").read_text() == opened.text
    assert await window_changes(world) == [Window(None, 24)]
    await world.journal.undo(world.current.target(), None)
    assert world.current.target().persona.settings.context_hours == 8
    await world.journal.redo(world.current.target())
    assert world.current.target().persona.settings.context_hours == 24


async def test_a_window_that_cannot_be_recorded_is_not_written(world: World) -> None:
    world.configure(TEXT)
    await world.store.write(lambda connection: connection.execute("ALTER TABLE operations RENAME TO gone"))
    opened = await world.persona_admin.open(ME)
    with pytest.raises(StorageError):
        await world.persona_admin.set(ME, "context_hours", 24)
    with pytest.raises(StorageError):
        await world.persona_admin.save(opened, '{ "context_hours": 24 }')
    assert world.settings_text() == TEXT


async def test_a_window_that_cannot_be_committed_is_noted_later(
    tmp_path: Path, clock: FakeClock, model: ScriptedModel
) -> None:
    store = Store(Sqlite(tmp_path / "busy.db", busy_timeout_seconds=0.05))
    await store.open()
    world = await built(tmp_path, store, clock, model, limit_tokens=10_000)
    world.configure(TEXT)
    with closing(sqlite3.connect(tmp_path / "busy.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM operations").fetchone()
        with pytest.raises(DatabaseBusyError):
            await world.persona_admin.set(ME, "context_hours", 24)
        assert await window_changes(world) == []
    await world.current.note_edit(ME)
    assert await window_changes(world) == [Window(None, 24)]
    await store.close()


FRODO = "frodo"
WINDOW = (WINDOW_KEY,)
BEFORE, EDITED = b'{ "context_hours": 12 }', b'{ "context_hours": 7 }'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "personas" / FRODO / "system.jsonc"
    path.parent.mkdir(parents=True)
    path.write_bytes(BEFORE)
    return path


def edit(file: Path, text: bytes | None) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text)


def text_of(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


async def noted(store: Store, file: Path) -> list[object]:
    """Note what the file says, and return the acts of the journal."""
    await store.write(persona_rows.note_edit, file, FRODO, START)
    return await acts(store)


async def acts(store: Store) -> list[object]:
    return [each.act for each in await store.read(operation_rows.all_of, FRODO, 0)]


EDITS: dict[str, tuple[bytes | None, list[object]]] = {
    "another window": (EDITED, [Window(12, 7)]),
    "no window": (b"{}", [Window(12, None)]),
    "a window that is none": (b'{ "context_hours": "long" }', []),
    "an empty file": (b"", [Window(12, None)]),
    "no file": (None, [Window(12, None)]),
    "another setting": (b'{ "context_hours": 12, "tools": true }', []),
    "a broken file": (b"{", []),
    "no UTF-8": (b"\xff", []),
}


@pytest.mark.parametrize(("text", "entries"), EDITS.values(), ids=EDITS)
async def test_an_edit_by_hand_is_noted_once_and_leaves_the_file_alone(
    store: Store, file: Path, text: bytes | None, entries: list[object]
) -> None:
    assert await noted(store, file) == []
    edit(file, text)
    assert await noted(store, file) == entries
    assert text_of(file) == text
    assert await noted(store, file) == entries


async def test_an_edit_is_noted_once_the_file_is_mended(store: Store, file: Path) -> None:
    await noted(store, file)
    edit(file, b"{")
    assert await noted(store, file) == []
    edit(file, EDITED)
    assert await noted(store, file) == [Window(12, 7)]


async def test_an_edit_is_noted_before_the_next_change(store: Store, file: Path) -> None:
    await noted(store, file)
    edit(file, EDITED)
    await store.write_in_steps(persona_rows.change_entry, file, WINDOW, 48, FRODO, START)
    assert await acts(store) == [Window(12, 7), Window(7, 48)]
    assert await noted(store, file) == [Window(12, 7), Window(7, 48)]


async def test_a_change_of_a_window_that_the_journal_has_not_seen_is_one_entry(store: Store, file: Path) -> None:
    await store.write_in_steps(persona_rows.change_entry, file, WINDOW, 48, FRODO, START)
    assert await noted(store, file) == [Window(12, 48)]


@pytest.mark.parametrize("known", ["", "{", "twelve"])
async def test_a_damaged_note_of_the_window_begins_anew(store: Store, file: Path, known: str) -> None:
    await store.write(meta_rows.store, meta_rows.WINDOW + FRODO, known)
    assert await noted(store, file) == []
    edit(file, EDITED)
    assert await noted(store, file) == [Window(12, 7)]


@of_sqlite("triggers that call a function of the test")
async def test_an_edit_during_a_change_is_not_overwritten(store: Store, file: Path) -> None:
    def by_hand(connection: Connection) -> None:
        # A trigger runs in the transaction, when the text of the file is known already.
        assert isinstance(connection, sqlite3.Connection)
        connection.create_function("edit", 0, lambda: edit(file, EDITED))
        connection.execute("CREATE TEMP TRIGGER edited AFTER INSERT ON main.operations BEGIN SELECT edit(); END")

    await store.write(by_hand)
    with pytest.raises(SettingsError, match=r"^Another program is editing .*, so Chorus did not change it\."):
        await store.write_in_steps(persona_rows.change_entry, file, WINDOW, 24, FRODO, START)
    assert (text_of(file), await acts(store)) == (EDITED, [])


LLAMA = "ollama_chat/llama3.2:latest"


async def test_before_anything_is_known_only_the_embedded_model_is_offered(world: World) -> None:
    assert list(world.services.models.offered("")) == [ELIZA]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        *(("", [LLAMA, "openai/gpt-5.4-mini", ELIZA]), ("o", [LLAMA, "openai/gpt-5.4-mini"])),
        *(("openai/", ["openai/gpt-5.4-mini"]), ("anth", ["anthropic/claude-sonnet-5"]), ("banana", [])),
    ],
)
async def test_what_could_answer_is_offered_first_and_all_else_by_its_beginning(
    world: World, typed: str, offered: list[str]
) -> None:
    world.services.models.load()
    assert list(world.services.models.offered(typed)) == offered


@pytest.mark.parametrize("typed", ["eliza", "ELIZA", "eliza --once"])
async def test_eliza_needs_no_provider(world: World, typed: str) -> None:
    assert "Model: chorus/eliza (" in await world.told(f"/model {typed}")


async def test_a_name_is_trusted_doubted_or_refused(world: World) -> None:
    assert await world.services.models.doubt("openai/brand-new") is None
    assert "knows no provider 'opnai'" in str(await world.services.models.doubt("opnai/gpt-5.4-mini"))
    with pytest.raises(ModelNameError, match="There is no model 'banana'"):
        await world.services.models.doubt("banana")


async def test_part_of_a_name_leads_to_the_likely_model(world: World) -> None:
    assert (await world.told("/model claude")).endswith(" Did you mean anthropic/claude-sonnet-5?")


async def test_a_model_of_an_ollama_that_does_not_answer_is_doubted() -> None:
    known = KnownModels(frozenset, lambda: frozenset({"ollama"}), tuple, frozenset)
    told = "No Ollama with a model answers now, so ollama/llama3.2 cannot answer. Start Ollama with: ollama serve"
    assert await Models(known, {}).doubt("ollama/llama3.2") == told
    there = known._replace(on_this_machine=lambda: ("ollama_chat/llama3.2:latest",))
    assert await Models(there, {}).doubt("ollama/llama3.2") != told


async def test_a_bare_name_is_doubted_without_the_key_of_its_provider() -> None:
    known = KnownModels(lambda: frozenset({"gpt-5"}), frozenset, tuple, frozenset)
    assert (
        await Models(known, {}).doubt("gpt-5")
        == "There is no key for OpenAI, so messages will fail. Set OPENAI_API_KEY."
    )
    assert await Models(known, {"OPENAI_API_KEY": "key"}).doubt("gpt-5") is None


def test_of_a_provider_the_usual_model_comes_first_and_what_is_not_for_conversation_last() -> None:
    talking = frozenset({"gemini/b", "gemini/gemini-3.8-flash", "xai/grok-4.3", "other/b"})
    known = KnownModels(lambda: talking | {"gemini/a-composer"}, frozenset, tuple, lambda: talking)
    models = Models(known, {"XAI_API_KEY": "key", "GEMINI_API_KEY": "key"})
    models.load()
    gemini = ["gemini/gemini-3.8-flash", "gemini/b", "gemini/a-composer"]
    assert list(models.offered("")) == [*gemini, "xai/grok-4.3", ELIZA]
    assert list(models.offered("gemini/")) == gemini
    assert list(models.offered("other")) == ["other/b"]


async def test_a_model_without_a_key_is_set_for_the_persona_the_key_asked_for_and_forgotten_again(world: World) -> None:
    assert (await world.told("/model anthropic/claude-sonnet-5")).splitlines()[1:] == [
        "Model: anthropic/claude-sonnet-5 (set by /model)",
        "There is no key for Anthropic, so messages will fail. Set ANTHROPIC_API_KEY.",
    ]
    assert '"model": "anthropic/claude-sonnet-5"' in world.settings_text()
    assert "openai/test (--model)" in await world.told("/settings unset model")
    assert world.current.target().choice.model == "openai/test"


async def test_a_model_in_a_file_is_doubted_by_its_file_alone() -> None:
    known = KnownModels(
        frozenset, lambda: frozenset({"openai"}), tuple, frozenset, {"local/a b.gguf": "", "local/c": "No."}.__getitem__
    )
    models = Models(known, {})
    assert await models.doubt("local/a b.gguf") is None
    assert await models.doubt("local/c") == "No."
