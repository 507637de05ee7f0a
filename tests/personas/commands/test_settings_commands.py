"""/settings, in a line and in the editor, and /set and /model: lines in, answers out, on real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.core.errors import ChorusError, CommandError, PersonaError, SettingsError
from chorus_cli.framework.command_line import completions, resolve
from chorus_cli.framework.replies import Question, plain
from chorus_cli.log.rules.acts import Window
from chorus_cli.log.rules.log_acts import Act
from chorus_cli.settings.rules.table import SETTINGS
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.world import MODEL, World

TEXT = '// mine\n{\n  "temperature": 0.2, // calm\n  "aliases": ["a", "b"],\n}\n'


@pytest.fixture
def desk(world: World) -> World:
    """A persona with settings in a real file, a keyboard and an editor."""
    (world.folder / "drafts").mkdir(exist_ok=True)
    world.configure(TEXT)
    return world


def path(world: World) -> Path:
    return world.personas.settings_path("chorus")


async def windows(world: World) -> list[Act]:
    return [entry.operation.act for entry in await world.journal.entries(world.current.target())]


def offers(world: World, line: str) -> dict[str, str]:
    found = completions(world.services.registry, world.services, line)
    return {candidate.text: candidate.description for candidate in found.candidates}


def kept(world: World) -> list[str]:
    return [draft.read_text() for draft in sorted((world.folder / "drafts").glob("*"))]


async def test_the_list_has_every_setting_with_its_place_and_its_default(desk: World) -> None:
    desk.configure(TEXT.replace("}", '  "context_hors": 5,\n}'))
    (desk.folder / "config.jsonc").write_text(
        '{"defaults": {"idle_minutes": 5,\n"temperature": 0.5}}', encoding="utf-8"
    )
    lines = (await desk.told("/settings")).splitlines()
    assert lines[0] == f"Settings of chorus: {path(desk)}"
    rows = {line.split()[0]: line.split(None, 1)[1] for line in lines if line[:1].islower()}
    assert [key for key in rows if key in {setting.key for setting in SETTINGS}] == [each.key for each in SETTINGS]
    assert " ".join(rows["temperature"].split()) == "0.2 system.jsonc:3 0.5 (config.jsonc:2)"
    assert " ".join(rows["aliases"].split()) == "a, b system.jsonc:4 none"
    assert " ".join(rows["idle_minutes"].split()) == "5 config.jsonc:1 5 (config.jsonc:1)"
    assert " ".join(rows["context_hours"].split()) == "8 default 8"
    assert " ".join(rows["on_idle"].split()) == "save default save"
    assert f'{path(desk)}:5: unknown setting "context_hors" (did you mean "context_hours"?)' in lines


async def test_a_long_text_is_shortened_in_the_list_and_whole_on_its_own(desk: World) -> None:
    prompt = "Be kind.\n" * 20
    await desk.services.persona_admin.set("chorus", "system_prompt", prompt)
    listing = await desk.told("/settings")
    assert prompt not in listing
    assert "Be kind. Be kind. Be kind. Be kind. Be kind. Be…" in listing
    assert (await desk.told("/settings system_prompt")).endswith(f"\n\n{prompt}")


@pytest.mark.parametrize("line", ["/settings temperature", "/settings show temperature", "/SETTINGS Temperature"])
async def test_one_setting_is_shown_with_all_there_is_to_say(desk: World, line: str) -> None:
    assert (await desk.told(line)).splitlines() == [
        "temperature: How freely the model words things.",
        "Value: 0.2",
        f"From: {path(desk)}:3",
        "Default: the provider's",
        "Accepts: a number from 0 to 2",
    ]


@pytest.mark.parametrize(
    ("line", "reply", "before", "after"),
    [
        ("set temperature 0,7", "temperature is now 0.7 (it was 0.2), in {path}.", "0.2", "0.7"),
        ("set temperature 0.2", "temperature is already 0.2, in {path}. The file is unchanged.", "", ""),
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
            "temperature is now not set (it was 0.2), in {path}. Now in effect: the provider's.",
            '  "temperature": 0.2, // calm\n',
            "  // calm\n",
        ),
        ("unset tools", "tools is not set, in {path}. The file is unchanged. Now in effect: true.", "", ""),
    ],
)
async def test_a_setting_is_changed_by_one_line_and_every_other_byte_stays(
    desk: World, line: str, reply: str, before: str, after: str
) -> None:
    assert await desk.told(f"/settings {line}") == reply.format(path=path(desk))
    assert desk.settings_text() == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("line", "error", "sentence"),
    [
        ("set", CommandError, "/settings set needs <key>, for example:"),
        ("set temperature", CommandError, "/settings set needs <value>, for example:"),
        ("set temperature hot", SettingsError, 'temperature cannot be "hot"; it must be a number from 0 to 2.'),
        ("set temprature 1", SettingsError, 'There is no setting "temprature" (did you mean "temperature"?).'),
        ("temprature", SettingsError, 'There is no setting "temprature" (did you mean "temperature"?).'),
        ("unset", CommandError, "/settings unset needs <key>, for example:"),
        ("unset mine", SettingsError, 'There is no setting "mine"'),
        ("set context_hours 24h", SettingsError, "For a time with a unit, use /context 24h."),
        ("set name new", PersonaError, "A persona cannot be called 'new'"),
        ("set aliases x, Human", PersonaError, "A persona cannot be called 'Human'"),
    ],
)
async def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    desk: World, line: str, error: type[ChorusError], sentence: str
) -> None:
    with pytest.raises(error) as refusal:
        await desk.carry_out(f"/settings {line}")
    assert sentence in str(refusal.value)
    assert desk.settings_text() == TEXT


async def test_unset_says_what_holds_by_the_settings_of_all_personas(desk: World) -> None:
    config = desk.folder / "config.jsonc"
    config.write_text('{"defaults": {"temperature": 0.5}}', encoding="utf-8")
    assert (await desk.told("/settings unset temperature")).endswith("Now in effect: 0.5 (config.jsonc:1).")
    told = await desk.told("/settings set temperature 0.9")
    assert told.startswith("temperature is now 0.9 (it was 0.5, from config.jsonc:1), in ")


async def test_the_window_is_confirmed_as_by_context_and_undone_by_it(desk: World) -> None:
    reply = await desk.told("/settings set context_hours 24")
    assert reply.startswith(f"context_hours is now 24 (it was not set), in {path(desk)}.\nContext window set to 24h\n")
    assert "are in context." in reply
    assert "is already 24" in await desk.told("/settings set context_hours 24")
    reply = await desk.told("/settings unset context_hours")
    assert "Now in effect: 8.\nContext window reset to default (8h)\nMessages since" in reply
    assert await windows(desk) == [Window(None, 24), Window(24, None)]
    await desk.journal.undo(desk.current.target(), None)
    assert '"context_hours": 24' in desk.settings_text()
    await desk.journal.undo(desk.current.target(), None)
    assert desk.current.target().persona.settings.context_hours == 8


async def test_the_line_is_completed_by_keys_then_by_what_the_key_takes(desk: World) -> None:
    keys = {setting.key: setting.help for setting in SETTINGS}
    assert offers(desk, "/settings unset ") == keys
    assert offers(desk, "/settings set context_") == {key: keys[key] for key in keys if key.startswith("context_")}
    assert set(offers(desk, "/settings ")) == {*keys}
    assert offers(desk, "/settings set clock ") == {"true": "now in effect", "false": ""}
    assert offers(desk, "/settings set on_idle s") == {"save": "now in effect", "save+clear": ""}
    assert offers(desk, "/settings set temperature ") == {"0.2": "now in effect"}
    assert offers(desk, "/settings set Aliases ") == {"a, b": "now in effect", "[]": "the default"}
    assert offers(desk, "/settings set banana ") == {}
    await desk.services.persona_admin.set("chorus", "context_hours", 24)
    assert offers(desk, "/settings set context_hours ") == {"all": "", "8": "the default", "24": "now in effect"}


async def test_what_is_edited_and_saved_holds_and_its_changes_are_told(desk: World) -> None:
    edited = '{ "temperature": 0.9, "context_hours": 24,\n"mine": 1, "model": "chorus/eliza", "clock": null }'
    desk.editor.enqueue(edited)
    reply = (await desk.told("/settings edit")).splitlines()
    assert desk.editor.shown == [TEXT]
    assert reply[:5] == [
        f"Saved {path(desk)}.",
        "aliases: a, b → not set",
        "model: not set → chorus/eliza",
        "temperature: 0.2 → 0.9",
        "context_hours: not set → 24",
    ]
    assert f'{path(desk)}:2: unknown setting "mine"' in reply
    assert "Context window set to 24h" in reply
    assert "Model: chorus/eliza (set by /model)" in reply
    assert await windows(desk) == [Window(None, 24)]
    assert desk.settings_text() == edited
    assert path(desk).with_name("system.jsonc.bak").read_text() == TEXT
    assert kept(desk) == []


async def test_what_was_left_unchanged_changes_nothing(desk: World) -> None:
    desk.editor.enqueue(None)
    assert await desk.told("/settings edit") == "Nothing was changed."
    assert (desk.settings_text(), kept(desk)) == (TEXT, [])


async def test_only_a_comment_that_is_edited_is_saved_too(desk: World) -> None:
    desk.editor.enqueue(TEXT.replace("calm", "lively"))
    assert await desk.told("/settings edit") == f"Saved {path(desk)}; no setting changed."
    assert desk.settings_text() == TEXT.replace("calm", "lively")


async def test_a_mistake_is_told_with_its_place_and_can_be_mended_in_the_same_draft(desk: World) -> None:
    desk.editor.enqueue('{\n  "temperature" 1\n}')
    desk.editor.enqueue('{\n  "temperature": 5, "clock":\n"no" }')
    desk.editor.enqueue('{\n  "temperature": 1\n}')
    question = await desk.asked_back("/settings edit")
    assert question.text == "system.jsonc:2:17: expected ':', found '1'.\nEdit again?"
    again = await question.confirmed()
    assert isinstance(again, Question)
    wrong = (
        "temperature cannot be 5; it must be a number from 0 to 2.",
        'clock cannot be "no"; it must be true or false.',
    )
    assert again.text == "".join(f"system.jsonc:2: {each}\n" for each in wrong) + "Edit again?"
    assert plain(await again.confirmed()).startswith(f"Saved {path(desk)}.")
    assert desk.editor.shown == [TEXT, '{\n  "temperature" 1\n}', '{\n  "temperature": 5, "clock":\n"no" }']
    assert len(set(desk.editor.opened)) == 1
    assert kept(desk) == []


async def test_a_file_that_somebody_else_changed_meanwhile_is_left_and_the_draft_is_kept(desk: World) -> None:
    def edit(draft: Path) -> None:
        draft.write_text('{ "context_hours": 24 }')
        desk.configure('{ "temperature": 2 }')

    desk.editor.enqueue(edit)
    with pytest.raises(CommandError) as refusal:
        await desk.carry_out("/settings edit")
    draft = desk.editor.opened[0]
    assert str(refusal.value) == (
        f"Another program changed {path(desk)} in the meantime, so Chorus did not overwrite it. "
        f"Your text is kept in {draft}."
    )
    assert desk.settings_text() == '{ "temperature": 2 }'
    assert (kept(desk), await windows(desk)) == (['{ "context_hours": 24 }'], [])


OTHER = "anthropic/claude-sonnet-5"
WITHOUT_A_KEY = "There is no key for Anthropic, so messages will fail. Set ANTHROPIC_API_KEY."


async def temperatures(world: World) -> list[float | None]:
    await world.say("Go on")
    return [request.temperature for request in world.model.requests]


async def test_a_value_of_all_personas_is_shown_once(desk: World) -> None:
    desk.personas.config_file.write_text('{"defaults": {"user_name": "Peter"}}')
    lines = (await desk.told("/set user_name")).splitlines()
    assert [line.partition(" (")[0] for line in lines[1:3]] == [
        "Value: Peter",
        f"From: {desk.personas.config_file}:1, for all personas",
    ]
    assert "Default" not in "\n".join(lines)


async def test_set_writes_to_the_file_as_settings_set_does_and_shows_what_has_no_value(desk: World) -> None:
    assert (await desk.told("/set temperature 0.9")).startswith("temperature is now 0.9 (it was 0.2), in ")
    assert await desk.told("/set temperature") == await desk.told("/settings temperature")
    assert (await desk.told("/set temperature default")).startswith("temperature is now not set (it was ")
    assert await desk.told("/set") == await desk.told("/settings")
    assert desk.personas.set_in_this_run("chorus") == {}


async def test_a_setting_of_this_run_holds_before_the_file_and_changes_no_file(desk: World) -> None:
    before = path(desk).read_text()
    assert await desk.told("/set temperature 0.9 --once") == "temperature is 0.9 until you quit."
    assert path(desk).read_text() == before
    assert await temperatures(desk) == [0.9]
    assert "From: this run" in await desk.told("/settings temperature")
    assert (await desk.told("/set tools true --once")).startswith("tools is true")
    assert (await desk.told("/set tools default")).endswith("Now in effect: true.")
    assert await desk.told("/set temperature default --once") == "temperature is 0.2 again."
    assert await temperatures(desk) == [0.9, 0.2]


async def test_an_effort_is_offered_and_goes_with_each_request(desk: World) -> None:
    assert [*offers(desk, "/set effort ")] == ["none", "low", "medium", "high"]
    await desk.say("Think")
    await desk.told("/set effort high --once")
    await desk.say("Think harder")
    assert [request.effort for request in desk.model.requests] == [None, "high"]


async def test_a_setting_that_is_written_to_the_file_ends_that_of_the_run(desk: World) -> None:
    await desk.told("/set temperature 0.9 --once")
    await desk.told("/settings set temperature 0.5")
    assert await temperatures(desk) == [0.5]


async def test_a_setting_of_this_run_is_of_one_persona(desk: World) -> None:
    (desk.personas.folder / "other").mkdir()
    await desk.told("/set temperature 0.9 --once")
    assert desk.personas.load("other").settings.temperature is None


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("/set temperature 3 --once", "temperature cannot be 3; it must be a number from 0 to 2."),
        ("/set effort max --once", 'effort cannot be "max"; it must be "none", "low", "medium" or "high".'),
        *(
            (line, "/set --once needs a setting and a value, for example: /set temperature 0.2 --once")
            for line in ("/set --once", "/set temperature --once")
        ),
        (
            "/set temprature 1 --once",
            'There is no setting "temprature" (did you mean "temperature"?). /settings lists them.',
        ),
        *(
            (f"/set {key} x --once", f"{key} cannot be set for this run alone. Leave out --once.")
            for key in ("context_hours", "name", "aliases")
        ),
    ],
)
async def test_what_cannot_be_set_for_a_run_is_refused(desk: World, line: str, refusal: str) -> None:
    assert await desk.told(line) == refusal
    assert desk.personas.set_in_this_run("chorus") == {}


@pytest.mark.parametrize("line", [f"/model {OTHER} --once", f"/set model {OTHER} --once"])
async def test_a_model_chosen_once_answers_until_the_end_of_the_run(desk: World, line: str) -> None:
    before = path(desk).read_text()
    assert await desk.told(line) == f"Model: {OTHER} (for this run)\n{WITHOUT_A_KEY}"
    assert path(desk).read_text() == before
    await desk.say("Go on")
    assert desk.model.requests[-1].model == OTHER
    await desk.told("/model default")
    assert desk.current.target().choice.model == MODEL


@pytest.mark.parametrize("line", ["/model default --once", "/set model reset --once"])
async def test_the_end_of_a_model_for_this_run_names_the_model_that_answers_again(desk: World, line: str) -> None:
    await desk.told(f"/model {OTHER} --once")
    assert await desk.told(line) == f"Model: {MODEL} (--model)"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/model openai/gpt-99", "set by /model"),
        ("/model openai/gpt-99 --once", "for this run"),
        ("/settings set model openai/gpt-99", "set by /model"),
    ],
)
async def test_a_model_whose_context_length_is_assumed_is_told_of(world: World, line: str, reason: str) -> None:
    world.model.has_assumed_limit = True
    warning = (
        "The context size of this model is not known, so Chorus assumes 10,000 tokens (a test). /set "
        "context_token_limit N sets another."
    )
    assert f"Model: openai/gpt-99 ({reason})\n{warning}" in await world.told(line)
    assert await world.told("/model") == f"Model: openai/gpt-99 ({reason})\n{warning}"
    await world.told("/settings set context_token_limit 9000")
    assert warning not in await world.told(line)


async def test_a_model_that_takes_the_figures_of_another_names_it(world: World) -> None:
    world.model.has_assumed_limit, world.model.relative = True, "gpt-98"
    told = "litellm's list has no limits for this model, so Chorus assumes the limits and abilities of gpt-98."
    assert (await world.told("/model openai/gpt-99")).endswith(f"Model: openai/gpt-99 (set by /model)\n{told}")
    assert await world.told("/model") == f"Model: openai/gpt-99 (set by /model)\n{told}"


async def test_once_needs_a_model_and_is_completed_after_one(desk: World) -> None:
    assert await desk.told("/model --once") == "/model --once needs a model, for example: /model chorus/eliza --once"
    assert [*offers(desk, f"/model {OTHER} --o")] == ["--once"]


async def test_a_retry_with_a_model_is_answered_by_it_once(world: World) -> None:
    await world.say("Which way?")
    world.model.say("Through Moria.")
    turn = await resolve(world.services.registry, f"/retry {OTHER}", world.clock.now()).run(world.services)
    assert isinstance(turn, RunningTurn)
    await turn.over()
    await world.say("And then?")
    assert [request.model for request in world.model.requests] == [MODEL, OTHER, MODEL]
    assert (await world.seen())[:2] == ["Which way?", "Through Moria."]
    assert (await world.log())[2].model == OTHER


async def test_a_retry_with_a_name_that_is_none_asks_nobody(world: World) -> None:
    await world.say("Which way?")
    assert "There is no model 'banana'" in await world.told("/retry banana")
    assert len(world.model.requests) == 1
