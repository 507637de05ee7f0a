"""/settings as it is typed: lines in, answers out, on real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chorus_cli.commands.command_line import completions, resolve
from chorus_cli.commands.replies import Question, Reply, plain
from chorus_cli.core.errors import ChorusError, CommandError, EditorError, PersonaError, SettingsError
from chorus_cli.core.operations import WindowChange
from chorus_cli.core.persona_template import template
from chorus_cli.core.settings import SETTINGS
from chorus_cli.services.editing import Editing
from chorus_cli.services.persona_settings import PersonaSettings
from chorus_cli.storage.database import Store
from tests.fakes import FakeClock, ScriptedEditor, ScriptedModel
from tests.services.world import MODEL, World, built

TEXT = '// mine\n{\n  "temperature": 0.2, // calm\n  "aliases": ["a", "b"],\n}\n'


class Desk:
    """A persona's settings, a keyboard and an editor."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.editor = ScriptedEditor(world.clock)
        self.drafts = world.folder / "drafts"
        self.path = world.personas.settings_path("chorus")
        self.context = replace(
            world.commands,
            settings=PersonaSettings(world.store, world.clock, world.personas),
            editing=Editing(self.editor, self.drafts, world.clock),
        )

    async def type(self, line: str) -> Reply:
        answer = await resolve(self.context.registry, line, self.world.clock.now()).run(self.context)
        assert isinstance(answer, Reply)
        return answer

    async def text(self, line: str) -> str:
        return plain(await self.type(line))

    async def ask(self, line: str) -> Question:
        answer = await self.type(line)
        assert isinstance(answer, Question)
        return answer

    async def windows(self) -> list[WindowChange | None]:
        return [entry.operation.window for entry in await self.world.journal.entries(self.world.focus.place())]

    def offers(self, line: str) -> dict[str, str]:
        found = completions(self.context.registry, self.context, line)
        return {candidate.text: candidate.description for candidate in found.candidates}

    def kept(self) -> list[str]:
        return [draft.read_text() for draft in sorted(self.drafts.glob("*"))]


@pytest.fixture
async def desk(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> Desk:
    desk = Desk(await built(tmp_path, store, clock, model, limit_tokens=10_000))
    desk.drafts.mkdir(exist_ok=True)
    desk.world.configure(TEXT)
    return desk


async def test_the_list_has_every_setting_with_its_place_and_its_default(desk: Desk) -> None:
    desk.world.configure(TEXT.replace("}", '  "context_hors": 5,\n}'))
    (desk.world.folder / "config.jsonc").write_text('{"defaults": {"idle_minutes": 5}}', encoding="utf-8")
    lines = (await desk.text("/settings")).splitlines()
    assert lines[0] == f"Settings of chorus: {desk.path}"
    rows = {line.split()[0]: line.split(None, 1)[1] for line in lines if line[:1].islower()}
    assert [key for key in rows if key in {setting.key for setting in SETTINGS}] == [each.key for each in SETTINGS]
    assert " ".join(rows["temperature"].split()) == "0.2 system.jsonc:3 the provider's"
    assert " ".join(rows["aliases"].split()) == "a, b system.jsonc:4 none"
    assert " ".join(rows["idle_minutes"].split()) == "5 config.jsonc:1 5 (config.jsonc:1)"
    assert " ".join(rows["context_hours"].split()) == "8 default 8"
    assert " ".join(rows["on_idle"].split()) == "save default save"
    assert f'{desk.path}:5: unknown setting "context_hors" (did you mean "context_hours"?)' in lines


async def test_a_long_text_is_shortened_in_the_list_and_whole_on_its_own(desk: Desk) -> None:
    prompt = "Be kind.\n" * 20
    await desk.context.settings.set("chorus", "system_prompt", prompt)
    listing = await desk.text("/settings")
    assert prompt not in listing
    assert "Be kind. Be kind. Be kind. Be kind. Be kind. Be…" in listing
    assert (await desk.text("/settings system_prompt")).endswith(f"\n\n{prompt}")


@pytest.mark.parametrize("line", ["/settings temperature", "/settings show temperature", "/SETTINGS Temperature"])
async def test_one_setting_is_shown_with_all_there_is_to_say(desk: Desk, line: str) -> None:
    assert (await desk.text(line)).splitlines() == [
        "temperature: How freely the model words things.",
        "Value: 0.2",
        f"From: {desk.path}:3",
        "Default: the provider's",
        "Takes: a number from 0 to 2",
    ]


@pytest.mark.parametrize(
    ("line", "reply", "before", "after"),
    [
        ("set temperature 0,7", "temperature is now 0.7 (it was 0.2), in {path}.", "0.2", "0.7"),
        ("set temperature 0.2", "temperature is 0.2 already, in {path}. Nothing was changed.", "", ""),
        ("set Clock No", "clock is now false (it was not set), in {path}.", '"b"],', '"b"],\n  "clock": false,'),
        ("set aliases c", "aliases is now c (it was a, b), in {path}.", '["a", "b"]', '["c"]'),
        ("set aliases []", "aliases is now [] (it was a, b), in {path}.", '["a", "b"]', "[]"),
        (
            'set description don\'t, "ever"',
            'description is now don\'t, "ever" (it was not set), in {path}.',
            '"b"],',
            '"b"],\n  "description": "don\'t, \\"ever\\"",',
        ),
        (
            "unset temperature",
            "temperature is no longer set in {path} (it was 0.2). What holds now: the provider's (default).",
            '  "temperature": 0.2, // calm\n',
            "  // calm\n",
        ),
        ("unset tools", "tools is not set in {path}. What holds now: true (default).", "", ""),
    ],
)
async def test_a_setting_is_changed_by_one_line_and_every_other_byte_stays(
    desk: Desk, line: str, reply: str, before: str, after: str
) -> None:
    assert await desk.text(f"/settings {line}") == reply.format(path=desk.path)
    assert desk.world.settings_text() == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("line", "error", "sentence"),
    [
        ("set", CommandError, "/settings set needs <key>."),
        ("set temperature", CommandError, "/settings set needs <value>."),
        ("set temperature hot", SettingsError, 'temperature is "hot"; it must be a number from 0 to 2.'),
        ("set temprature 1", SettingsError, 'There is no setting "temprature" (did you mean "temperature"?).'),
        ("temprature", SettingsError, 'There is no setting "temprature" (did you mean "temperature"?).'),
        ("unset", CommandError, "/settings unset needs <key>."),
        ("unset mine", SettingsError, 'There is no setting "mine"'),
        ("set context_hours 24h", SettingsError, "A time with a unit goes with /context 24h."),
        ("set name new", PersonaError, "Nobody can be called 'new'"),
        ("set aliases x, Human", PersonaError, "Nobody can be called 'Human'"),
    ],
)
async def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    desk: Desk, line: str, error: type[ChorusError], sentence: str
) -> None:
    with pytest.raises(error) as refusal:
        await desk.type(f"/settings {line}")
    assert sentence in str(refusal.value)
    assert desk.world.settings_text() == TEXT


async def test_unset_says_what_holds_by_the_settings_of_all_personas(desk: Desk) -> None:
    config = desk.world.folder / "config.jsonc"
    config.write_text('{"defaults": {"temperature": 0.5}}', encoding="utf-8")
    assert (await desk.text("/settings unset temperature")).endswith(f"What holds now: 0.5, from {config}:1.")


async def test_the_window_is_confirmed_as_by_context_and_undone_by_it(desk: Desk) -> None:
    reply = await desk.text("/settings set context_hours 24")
    assert reply.startswith(f"context_hours is now 24 (it was not set), in {desk.path}.\nContext window set to 24h\n")
    assert "are in context." in reply
    reply = await desk.text("/settings unset context_hours")
    assert "What holds now: 8 (default).\nContext window reset to default (8h)\nMessages since" in reply
    assert await desk.windows() == [WindowChange(None, 24), WindowChange(24, None)]
    await desk.world.journal.undo(desk.world.focus.place(), None)
    assert '"context_hours": 24' in desk.world.settings_text()


async def test_a_model_that_is_set_answers_at_once_also_against_the_command_line(desk: Desk) -> None:
    assert desk.world.focus.place().choice.model == MODEL
    assert "Model: chorus/eliza (set by /model)" in await desk.text("/settings set model chorus/eliza")
    assert desk.world.focus.place().choice.model == "chorus/eliza"


async def test_the_line_is_completed_by_keys_then_by_what_the_key_takes(desk: Desk) -> None:
    keys = {setting.key: setting.help for setting in SETTINGS}
    assert desk.offers("/settings unset ") == keys
    assert desk.offers("/settings set context_") == {key: keys[key] for key in keys if key.startswith("context_")}
    assert set(desk.offers("/settings ")) == {"list", "set", "unset", "edit", "show", *keys}
    assert desk.offers("/settings set clock ") == {"true": "as it is now", "false": ""}
    assert desk.offers("/settings set on_idle s") == {"save": "as it is now", "save+clear": ""}
    assert desk.offers("/settings set temperature ") == {"0.2": "as it is now"}
    assert desk.offers("/settings set Aliases ") == {"a, b": "as it is now", "[]": "the default"}
    assert desk.offers("/settings set banana ") == {}
    await desk.context.settings.set("chorus", "context_hours", 24)
    assert desk.offers("/settings set context_hours ") == {"8": "the default", "24": "as it is now"}


async def test_what_is_edited_and_saved_holds_and_its_changes_are_told(desk: Desk) -> None:
    desk.editor.enqueue('{ "temperature": 0.9, "context_hours": 24,\n"mine": 1, "model": "chorus/eliza" }')
    reply = (await desk.text("/settings edit")).splitlines()
    assert desk.editor.shown == [TEXT]
    assert reply[:5] == [
        f"Saved {desk.path}.",
        "aliases: a, b → not set",
        "model: not set → chorus/eliza",
        "temperature: 0.2 → 0.9",
        "context_hours: not set → 24",
    ]
    assert f'{desk.path}:2: unknown setting "mine"' in reply
    assert "Context window set to 24h" in reply
    assert "Model: chorus/eliza (set by /model)" in reply
    assert await desk.windows() == [WindowChange(None, 24)]
    assert desk.path.with_name("system.jsonc.bak").read_text() == TEXT
    assert desk.kept() == []


@pytest.mark.parametrize(
    ("draft", "reply"),
    [
        (None, "Nothing was changed."),
        ("", "Nothing was changed: an empty text was saved."),
        (" \n", "Nothing was changed: an empty text was saved."),
    ],
)
async def test_what_was_left_unchanged_or_empty_changes_nothing(desk: Desk, draft: str | None, reply: str) -> None:
    desk.editor.enqueue(draft)
    assert await desk.text("/settings edit") == reply
    assert desk.world.settings_text() == TEXT
    assert desk.kept() == []


async def test_an_editor_that_ended_badly_without_a_change_leaves_no_draft(desk: Desk) -> None:
    desk.editor.enqueue(None, complaint="nano ended with status 1.", seconds=0.1)
    assert await desk.text("/settings edit") == "nano ended with status 1. Nothing was changed."
    assert desk.kept() == []


async def test_a_window_that_may_still_be_open_keeps_its_draft(desk: Desk) -> None:
    desk.editor.enqueue(None, seconds=0.1)
    reply = await desk.text("/settings edit")
    assert reply.startswith("The editor returned at once; if it opens a window of its own, have it wait: code --wait")
    assert f"Nothing was changed. The draft stays in {desk.drafts}" in reply
    assert desk.kept() == [TEXT]


async def test_only_a_comment_that_is_edited_is_saved_too(desk: Desk) -> None:
    desk.editor.enqueue(TEXT.replace("calm", "lively"))
    assert await desk.text("/settings edit") == f"Saved {desk.path}; no setting has changed."
    assert desk.world.settings_text() == TEXT.replace("calm", "lively")


async def test_a_mistake_is_told_with_its_place_and_can_be_mended_in_the_same_draft(desk: Desk) -> None:
    desk.editor.enqueue('{\n  "temperature" 1\n}')
    desk.editor.enqueue('{\n  "temperature": 5\n}')
    desk.editor.enqueue('{\n  "temperature": 1\n}')
    question = await desk.ask("/settings edit")
    assert question.text == "system.jsonc:2:17: expected ':', found '1'.\nEdit again?"
    again = await question.confirmed()
    assert isinstance(again, Question)
    assert again.text == "system.jsonc:2: temperature is 5; it must be a number from 0 to 2.\nEdit again?"
    assert plain(await again.confirmed()).startswith(f"Saved {desk.path}.")
    assert desk.editor.shown == [TEXT, '{\n  "temperature" 1\n}', '{\n  "temperature": 5\n}']
    assert len(set(desk.editor.opened)) == 1
    assert desk.kept() == []


async def test_a_mistake_that_is_not_mended_leaves_the_file_and_keeps_the_draft(desk: Desk) -> None:
    desk.editor.enqueue('{ "temperature": 1')
    question = await desk.ask("/settings edit")
    assert question.declined.text == (f"{desk.path} was left as it was; your text is kept in {desk.editor.opened[0]}.")
    assert desk.world.settings_text() == TEXT
    assert desk.kept() == ['{ "temperature": 1']


@pytest.mark.parametrize(("key", "value"), [("name", '"Sam"'), ("aliases", '["x", "SAM"]'), ("name", '"Human"')])
async def test_a_name_that_cannot_be_is_told_like_a_mistake(desk: Desk, key: str, value: str) -> None:
    (desk.world.folder / "personas" / "frodo").mkdir()
    desk.world.configure('{ "aliases": ["Sam"] }', "frodo")
    desk.editor.enqueue(f'{{ "{key}": {value} }}')
    assert (await desk.ask("/settings edit")).text.endswith("Edit again?")
    assert desk.world.settings_text() == TEXT


async def test_an_editor_that_ended_badly_with_changes_is_asked_about(desk: Desk) -> None:
    for _ in range(2):
        desk.editor.enqueue('{ "tools": false }', complaint="vim was killed.")
    question = await desk.ask("/settings edit")
    assert question.text == "vim was killed.\nUse what was saved?"
    assert desk.world.settings_text() == TEXT
    assert desk.kept() == ['{ "tools": false }']
    assert plain(await question.confirmed()).startswith(f"Saved {desk.path}.")
    assert desk.kept() == []


async def test_a_file_that_somebody_else_changed_meanwhile_is_left_and_the_draft_is_kept(desk: Desk) -> None:
    def edit(draft: Path) -> None:
        draft.write_text('{ "temperature": 1 }')
        desk.world.configure('{ "temperature": 2 }')

    desk.editor.enqueue(edit)
    with pytest.raises(CommandError) as refusal:
        await desk.type("/settings edit")
    draft = desk.editor.opened[0]
    assert str(refusal.value) == (
        f"{desk.path} was changed by somebody else meanwhile and is left as it is. Your text is kept in {draft}."
    )
    assert desk.world.settings_text() == '{ "temperature": 2 }'
    assert desk.kept() == ['{ "temperature": 1 }']


async def test_a_broken_file_is_mended_in_the_editor(desk: Desk) -> None:
    desk.world.configure('{ "context_hours": 24,, }')
    with pytest.raises(SettingsError, match="/settings edit opens the file to mend it"):
        await desk.type("/settings set context_hours 24")
    desk.editor.enqueue('{ "context_hours": 24, }')
    reply = await desk.text("/settings edit")
    assert desk.editor.shown == ['{ "context_hours": 24,, }']
    assert "Context window set to 24h" in reply
    assert desk.world.settings_text() == '{ "context_hours": 24, }'


async def test_where_there_is_no_file_the_commented_template_is_edited(desk: Desk) -> None:
    desk.path.unlink()
    assert await desk.text("/settings edit") == "Nothing was changed."
    assert desk.editor.shown == [template("chorus")]
    assert not desk.path.exists()


async def test_without_an_editor_nothing_is_left_behind(desk: Desk) -> None:
    desk.editor.enqueue(EditorError("There is no editor."))
    with pytest.raises(EditorError, match=r"There is no editor\."):
        await desk.type("/settings edit")
    assert desk.kept() == []
