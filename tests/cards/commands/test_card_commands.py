"""``/persona import``, ``export`` and ``greeting``: a card makes a persona, and a persona a card."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.cards.rules.png import card_json
from chorus_cli.core import limits
from chorus_cli.core.errors import JournalError, StorageError
from chorus_cli.framework.replies import Inquiry, Question, Text, plain
from chorus_cli.log.rules.acts import Way
from chorus_cli.personas import rows as persona_rows
from tests.cards.rules.made_cards import archive, card, picture, text_chunk
from tests.storage.database import refuse
from tests.world import World

GREETING = "*Mira looks up.* You are wet, User."


@pytest.fixture
def mira(tmp_path: Path) -> Path:
    path = tmp_path / "mira.png"
    path.write_bytes(picture(text_chunk("chara", card(2))))
    return path


ASKED = "What should Mira call you? (Enter: User)"


async def imported(world: World, line: str, user: str = "") -> str:
    """Import the first card of a world, and answer what it should call the user."""
    inquiry = await world.carry_out(line)
    assert isinstance(inquiry, Inquiry)
    assert inquiry.text == ASKED
    return plain(await inquiry.answered(user))


@pytest.fixture
def _named(world: World) -> None:
    world.personas.config_file.write_text('{"defaults": {"user_name": "User"}}')


@pytest.fixture
async def arrived(world: World, mira: Path) -> World:
    await imported(world, f"/persona import {mira}")
    return world


def content(path: Path) -> bytes:
    return path.read_bytes()


def written(tmp_path: Path, name: str, document: object) -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(document))
    return path


def system_message(world: World) -> str:
    return world.model.requests[-1].messages[0].content


async def test_a_card_makes_a_persona_with_a_greeting_documents_and_memory(world: World, mira: Path) -> None:
    assert await imported(world, f"/persona import {mira}") == (
        "Created Mira from mira.png (by somebody): a greeting, 1 document, 3 memory items (1 pinned).\n"
        "The card has 2 greetings; in its chat, /persona greeting 2 uses the second.\n"
        "Creator's notes: Best with patience.\n"
        "\n"
        "You are now talking to Mira (openai/test).\n\n"
        f"{GREETING}"
    )
    assert world.current.slug == "mira"
    assert await world.seen() == [GREETING]
    assert "made from a character card" in await world.told("/persona info")


@pytest.mark.usefixtures("_named")
async def test_typed_and_imported_texts_of_a_card_have_the_same_name(world: World, tmp_path: Path) -> None:
    await world.told(f"/persona import {written(tmp_path, 'mira.json', card(3, name='Mira Tallow', nickname='Mira'))}")
    await world.told("/set note {{char}} is cold.")
    world.model.say("Come in.")
    await world.say("hello")
    assert "Mira keeps the lighthouse." in system_message(world)
    assert world.asked()[-1][1] == "hello\n\n[Note: Mira is cold.]"
    await world.told("/set nickname Mi")
    assert (await world.told("/new")).endswith("*Mi looks up.* You are wet, User.")


async def test_macros_are_replaced_when_they_are_sent(arrived: World) -> None:
    arrived.model.say("Come in.")
    await arrived.say("hello")
    system = system_message(arrived)
    assert "Mira keeps the lighthouse.\n\nMira's personality: dry, watchful\n\nScenario: A storm keeps User" in system
    assert "How Mira writes, in examples:\n\nUser: Is it far?" in system
    assert system.endswith("#1 (2026-02-12): It is 1890.")
    assert "{{" not in system
    assert arrived.asked()[-1][1] == "hello\n\n[Note: Stay in the storm.]"
    await arrived.told("/settings set user_name Ada")
    arrived.model.say("Again.")
    await arrived.say("hello again")
    assert "A storm keeps Ada at the lighthouse." in system_message(arrived)


async def test_a_character_and_what_is_shown_of_its_talk_call_the_user_by_name(arrived: World, tmp_path: Path) -> None:
    await arrived.told("/settings set user_name Ada")
    await arrived.told("/remember water the fuchsia")
    arrived.model.say("A wet lamp.")
    await arrived.say("hello fuchsia")
    assert "(2026-02-12, from Ada): water the fuchsia" in system_message(arrived)
    await arrived.told(f"/export {tmp_path}/talk.md")
    assert "## Ada, " in (tmp_path / "talk.md").read_text()
    commands = ("/thread history", "/search fuchsia", "/context at 1h", "/context save", "/context 1h?")
    arrived.clock.advance(timedelta(hours=2))
    shown = "\n".join([await arrived.told(each) for each in commands])
    shown += await arrived.told(f"/context show {arrived.clock.now():%Y-%m-%d}")
    assert shown.count("Ada: hello fuchsia") == 2
    assert shown.count("Ada: hello «fuchsia»") == 1
    assert len(re.findall(r"Ada +hello fuchsia", shown)) == 2
    assert "Human" not in shown
    summarised = arrived.model.requests[-1].messages[-1].content
    assert "Ada: hello fuchsia" in summarised
    question = await arrived.carry_out("/purge search fuchsia")
    assert isinstance(question, Question)
    assert " you: hello fuchsia" in question.text


@pytest.mark.parametrize(("answer", "name"), [("Ada", "Ada"), ("", "User")])
async def test_the_first_card_asks_what_to_call_the_user_and_no_other_does(
    world: World, mira: Path, tmp_path: Path, answer: str, name: str
) -> None:
    world.personas.config_file.write_text('{\n  // Mine.\n  "defaults": {"clock": false}\n}\n')
    assert f"You are wet, {name}." in await imported(world, f"/persona import {mira}", answer)
    kept = f'{{\n  // Mine.\n  "defaults": {{"clock": false, "user_name": "{name}"}}\n}}\n'
    assert world.personas.config_file.read_text() == kept
    other = written(tmp_path, "other.json", card(2, first_mes="{{user}}, again."))
    assert f"{name}, again." in await world.told(f"/persona import {other}")


async def test_a_declined_question_a_dry_run_and_a_shell_leave_the_name(world: World, mira: Path) -> None:
    inquiry = await world.carry_out(f"/import {mira}")
    assert isinstance(inquiry, Inquiry)
    assert plain(inquiry.declined) == "Nothing was imported."
    assert "Would create Mira" in await world.told(f"/import {mira} --dry-run")
    assert "Created Mira" in plain(await inquiry.unasked())
    assert not world.personas.config_file.exists()


async def test_the_original_prompt_is_the_users_own(arrived: World) -> None:
    for own, expected in (("{}", "Be the character"), ('{"defaults": {"system_prompt": "Rhyme."}}', "Rhyme. Speak")):
        arrived.personas.config_file.write_text(own)
        arrived.model.say("So.")
        await arrived.say("hello")
        assert system_message(arrived).startswith(expected)


async def test_an_entry_of_any_age_is_sent_when_a_message_or_the_reply_before_has_its_key(arrived: World) -> None:
    for question, reply in (
        ("hello", "The lamps are lit."),
        ("I see", "Yes."),
        ("a wreck", "Which?"),
        ("its gold", "Ah"),
    ):
        arrived.model.say(reply)
        await arrived.say(question)
    preambles = [message.preamble for message in await arrived.log() if message.role == "user"]
    assert preambles == [
        "",
        "From memory:\n#3 (2026-02-12): The lamp was made in Mira's youth.",
        "",
        "",
    ]
    arrived.clock.advance(timedelta(days=30))
    arrived.model.say("Deep.")
    await arrived.say("The wrecks with gold")
    assert (await arrived.log())[-2].preamble.endswith("The Anna sank with its gold.")


async def test_the_import_can_be_undone(arrived: World) -> None:
    assert await arrived.told("/context undo") == "Undone: imported 3 memory items from mira.png"
    assert await arrived.told("/context undo") == "Undone: greeting of the character card"
    assert await arrived.seen() == []
    assert "Nothing is remembered" in await arrived.told("/memory list")
    await arrived.told("/context redo")
    assert await arrived.seen() == [GREETING]


async def test_the_same_card_makes_one_persona(arrived: World, mira: Path) -> None:
    await arrived.told("/persona chorus")
    assert (await arrived.told(f"/persona import {mira}")).startswith("Mira was made from mira.png before.")
    assert arrived.current.slug == "mira"
    await arrived.told("/persona archive")
    assert "/persona unarchive mira" in await arrived.told(f"/persona import {mira}")
    assert arrived.personas.archived() == ("mira",)


async def test_another_card_of_the_same_name_keeps_it_for_the_model(arrived: World, tmp_path: Path) -> None:
    other = written(tmp_path, "other.json", card(2, creator_notes=""))
    assert (await arrived.told(f"/persona import {other}")).startswith("Created Mira 2 from other.json")
    arrived.model.say("So.")
    await arrived.say("hello")
    assert "Mira keeps the lighthouse." in system_message(arrived)
    assert "Mira 2" not in system_message(arrived)


OTHER = "Who goes there, User?"


async def test_another_greeting_takes_the_place_of_one_that_nobody_has_answered(arrived: World) -> None:
    assert await arrived.told("/persona greeting 2") == OTHER
    assert await arrived.seen() == [OTHER]
    assert [row.content for row in await arrived.log()] == [GREETING, OTHER]
    again = f'Undone: greeting of the character card\nIn context: "{GREETING}"'
    assert await arrived.told("/undo") == again
    assert await arrived.seen() == [GREETING]
    arrived.model.say("Come in.")
    await arrived.say("hello")
    begun = "A greeting begins a conversation, and this one has begun. Use /thread new or /new first."
    assert await arrived.told("/persona greeting 2") == begun
    assert await arrived.seen() == [GREETING, "hello", "Come in."]
    assert await arrived.told("/persona greeting 3") == "The card of Mira has 2 greetings; there is no greeting 3."
    await arrived.told("/persona chorus")
    assert "not come from a character card" in await arrived.told("/persona greeting")


async def test_a_card_comes_out_as_picture_and_json(arrived: World, tmp_path: Path) -> None:
    data = card(2)["data"] | {"group_only_greetings": []}
    assert await arrived.told(f"/persona export Mira {tmp_path}/out.png") == f"Exported Mira to {tmp_path}/out.png"
    picture_out = content(tmp_path / "out.png")
    assert json.loads(card_json(picture_out) or b"") == {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    await arrived.told(f"/persona export {tmp_path}/")
    assert await arrived.told(f"/persona export mira {tmp_path}/out.json") == f"Exported Mira to {tmp_path}/out.json"
    assert json.loads((tmp_path / "out.json").read_text())["data"] == data


async def test_an_existing_file_is_overwritten_only_on_yes(arrived: World, mira: Path) -> None:
    before = content(mira)
    asked = await arrived.carry_out(f"/persona export Mira {mira}")
    assert isinstance(asked, Question)
    assert content(mira) == before
    assert plain(await asked.confirmed()) == f"Exported Mira to {mira}"
    assert content(mira) != before


async def test_the_list_names_the_user_in_a_description(arrived: World) -> None:
    await arrived.told("/set description The friend of {{user}}.")
    name = arrived.current.target().persona.settings.user_name
    assert f"The friend of {name}." in await arrived.told("/persona info")


@pytest.mark.usefixtures("_named")
async def test_a_persona_without_a_card_goes_out_and_comes_back(world: World, tmp_path: Path) -> None:
    world.configure('{"name": "Chorus", "system_prompt": "Say {{user}}.", "description": "A friend."}')
    await world.told(f"/persona export chorus {tmp_path}/chorus.png")
    assert (await world.told(f"/persona import {tmp_path}/chorus.png")).startswith("Created Chorus 2 from chorus.png.")
    chosen = world.current.target().persona.settings
    assert (chosen.system_prompt, chosen.description) == ("Say {{user}}.", "A friend.")


@pytest.mark.usefixtures("_named")
async def test_an_archive_of_version_3_makes_a_persona(world: World, tmp_path: Path) -> None:
    icon = picture()
    path = tmp_path / "mira.charx"
    path.write_bytes(archive({"card.json": json.dumps(card(3)).encode(), "assets/icon/main.png": icon}))
    assert "*Mi looks up.*" in await world.told(f"/persona import {path}")
    await world.told(f"/persona export Mira {tmp_path}/out.png")
    out = content(tmp_path / "out.png")
    assert json.loads(card_json(out) or b"") == card(3)
    assert out.startswith(icon[:50])
    await world.told("/persona chorus")
    assert await world.told("/persona mi") == "You are now talking to Mira (openai/test)."
    assert world.current.target().persona.settings.aliases == ("Mi",)
    await world.say("hello")
    assert "Mi keeps the lighthouse." in system_message(world)
    other = written(tmp_path, "other.json", card(3, name="Mimi"))
    await world.told(f"/persona import {other}")
    assert world.current.target().persona.settings.aliases == ()


@pytest.mark.parametrize("name", ["none.png", "text.json"])
async def test_a_file_without_a_card_makes_nothing(world: World, tmp_path: Path, name: str) -> None:
    (tmp_path / "text.json").write_text("{}")
    told = await world.told(f"/persona import {tmp_path / name}")
    assert told == f"There is no character card in {tmp_path / name}. Cards are PNG pictures, JSON or CHARX."
    assert world.personas.slugs() == ("chorus",)


@pytest.mark.usefixtures("_named")
async def test_a_note_as_long_as_the_setting_may_be_is_kept_and_a_longer_one_refused(
    world: World, tmp_path: Path
) -> None:
    longest = "x" * limits.NOTE.most
    path = written(tmp_path, "mira.json", card(2, post_history_instructions=f"{longest}x"))
    assert "The persona's note would have 100,001 characters" in await world.told(f"/persona import {path}")
    path = written(tmp_path, "mira.json", card(2, post_history_instructions=longest))
    await world.carry_out(f"/persona import {path}")
    assert world.current.target().persona.settings.note == longest


async def test_a_greeting_stays_and_a_new_conversation_begins_with_one(arrived: World) -> None:
    arrived.clock.advance(timedelta(days=3))
    assert await arrived.seen() == [GREETING]
    arrived.model.say("Come in.")
    await arrived.say("hello")
    assert await arrived.told("/new") == f"--- New conversation ---\n\n{GREETING}"
    assert await arrived.seen() == [GREETING]
    arrived.clock.advance(timedelta(days=3))
    assert await arrived.seen() == [GREETING]
    assert await arrived.told("/undo") == "Undone: new conversation"
    assert await arrived.seen() == [GREETING]
    arrived.clock.advance(timedelta(days=-3))
    assert await arrived.seen() == [GREETING, "hello", "Come in."]
    await arrived.told("/redo")
    assert await arrived.seen() == [GREETING]
    assert (await arrived.log())[-1].id == (await arrived.view()).messages[0].id
    (arrived.personas.folder / "mira" / "card.json").write_text("{")
    assert await arrived.told("/new") == "--- New conversation ---"


async def test_a_new_thread_begins_with_the_greeting(arrived: World) -> None:
    await arrived.told("/persona greeting 2")
    assert (await arrived.told("/thread new")).endswith(f"\n\n{GREETING}")
    assert await arrived.seen() == [GREETING]
    await arrived.told("/thread 1")
    assert await arrived.seen() == [OTHER]


async def test_a_new_conversation_begins_with_the_greeting_in_each_open_thread(arrived: World) -> None:
    arrived.model.say("Come in.")
    await arrived.say("hello")
    await arrived.told("/thread fork")
    await arrived.told("/thread 1")
    await arrived.told("/new")
    assert await arrived.seen() == [GREETING]
    await arrived.told("/thread 2")
    assert await arrived.seen() == [GREETING]
    await arrived.told("/undo")
    assert await arrived.seen() == [GREETING, "hello", "Come in."]
    await arrived.told("/thread 1")
    assert await arrived.seen() == [GREETING, "hello", "Come in."]


async def test_an_unanswered_greeting_has_the_names_of_now(arrived: World) -> None:
    told = await arrived.told("/set user_name Eva")
    assert told.endswith("The greeting that you have not answered has the new name.")
    assert await arrived.seen() == [GREETING.replace("User", "Eva")]
    await arrived.told("/set nickname Mi")
    assert await arrived.seen() == ["*Mi looks up.* You are wet, Eva."]
    await arrived.told("/set user_name default")
    assert await arrived.seen() == ["*Mi looks up.* You are wet, User."]
    arrived.model.say("Come in.")
    await arrived.say("hello")
    assert "not answered" not in await arrived.told("/set user_name Eva")
    assert await arrived.seen() == ["*Mi looks up.* You are wet, User.", "hello", "Come in."]
    await arrived.told("/undo")
    assert (await arrived.told("/undo")).startswith("Undone: imported 3 memory items")
    assert (await arrived.told("/undo")).startswith("Undone: greeting of the character card")
    assert await arrived.seen() == []


async def test_a_greeting_alone_cannot_be_answered_again(arrived: World) -> None:
    for way in (Way.AGAIN, Way.CONTINUE):
        with pytest.raises(JournalError) as refused:
            _ = [event async for event in arrived.conversation.retry(arrived.current.target(), way)]
        assert str(refused.value) == (
            "There is no message of yours in context to answer again. Write a message first; /persona greeting 2 "
            "chooses another greeting of the card."
        )


@pytest.mark.usefixtures("_named")
async def test_a_card_without_a_name_is_called_like_its_file(world: World, tmp_path: Path) -> None:
    made = card(1)
    del made["name"]
    told = await world.told(f"/persona import {written(tmp_path, 'old salt.json', made)}")
    assert told.startswith("Created old salt from old salt.json")
    assert told.endswith("*old salt looks up.* You are wet, User.")
    await world.told(f"/persona export old salt {tmp_path}/out.json")
    assert json.loads((tmp_path / "out.json").read_text())["data"]["name"] == "old salt"


@pytest.mark.usefixtures("_named")
async def test_a_card_whose_persona_was_deleted_begins_anew(world: World, mira: Path) -> None:
    await world.told(f"/persona import {mira}")
    world.model.say("Come in.")
    await world.say("hello")
    await world.told("/remember Mira is wet")
    await world.told("/persona chorus")
    await world.told("/persona archive mira")
    await (await world.asked_back("/persona delete mira")).confirmed()
    await world.told(f"/persona import {mira}")
    assert world.current.slug == "mira"
    assert await world.seen() == [GREETING]
    assert "Mira is wet" not in await world.told("/memory list")


@pytest.mark.usefixtures("_named")
async def test_a_card_that_cannot_be_stored_leaves_nothing(world: World, mira: Path) -> None:
    await world.store.write(refuse, "INSERT ON context_items")
    with pytest.raises(StorageError):
        await world.carry_out(f"/persona import {mira}")
    assert world.personas.slugs() == ("chorus",)
    assert await world.store.read(persona_rows.activity) == {}


@pytest.mark.usefixtures("_named")
async def test_a_card_is_imported_like_any_other_file(world: World, mira: Path, tmp_path: Path) -> None:
    told = await world.told(f"/import {mira} --dry-run")
    assert told.startswith("Would create Mira from mira.png (by somebody): a greeting")
    assert world.personas.slugs() == ("chorus",)
    other = written(tmp_path, "ben.json", card(1, name="Ben"))
    reply = await world.carry_out(f"/import {mira} {other}")
    assert isinstance(reply, Text)
    assert plain(reply).startswith("Created Mira from mira.png")
    assert "\nCreated Ben from ben.json: a greeting, 1 document." in plain(reply)
    assert reply.data
    ben = {"persona": "ben", "new": True, "told": "Created Ben from ben.json: a greeting, 1 document."}
    assert json.dumps(ben) in json.dumps(await reply.data())
    assert world.current.slug == "chorus"
    assert (await world.told(f"/import {mira}")).startswith("Mira was made from mira.png before.")
    assert world.current.slug == "mira"


@pytest.mark.usefixtures("_named")
async def test_the_cards_of_a_folder_are_imported(world: World, mira: Path, tmp_path: Path) -> None:
    folder = tmp_path / "characters"
    folder.mkdir()
    for name, data in (
        ("mira.png", content(mira)),
        ("a.png", picture()),
        ("ben.PNG", picture(text_chunk("chara", card(1, name="Ben")))),
    ):
        (folder / name).write_bytes(data)
    assert [
        line.split(":")[0] for line in (await world.told(f"/import {folder}")).splitlines() if "Created" in line
    ] == [
        "Created Ben from ben.PNG",
        "Created Mira from mira.png (by somebody)",
    ]
    assert world.personas.slugs() == ("ben", "chorus", "mira")
    path = folder / "a.png"
    assert await world.told(f"/import {path}") == f"{path}: This picture holds no character card."


async def test_both_names_that_an_edit_of_another_persona_changes_are_put_into_its_greeting(arrived: World) -> None:
    await arrived.told("/persona chorus")
    arrived.editor.enqueue('{"name": "Mira", "nickname": "Mo", "user_name": "Ada"}')
    assert "The greeting that you have not answered has the new name." in await arrived.told("/persona edit mira")
    await arrived.told("/persona mira")
    assert await arrived.seen() == ["*Mo looks up.* You are wet, Ada."]
