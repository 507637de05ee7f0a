"""``/import`` says what came in and for whom, and what did not, whatever else is among the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cards.rules.made_cards import card, picture, text_chunk
from tests.imports.service.foreign_talk import LATIUM, OFTEN, OSLO, ROME, WHERE, taken_in, written
from tests.world import World

CREATED = "Created Mira from mira.png"


async def test_only_the_personas_that_got_messages_are_named(world: World) -> None:
    of_sam = {**ROME, "persona": "sam"}, WHERE
    await taken_in(world, *of_sam)
    told = await world.told(f"/import {written(world.folder, *of_sam, OSLO, OFTEN)}")
    assert told.endswith("for chorus. /search finds them, /thread TITLE opens one, /context undo reverts it.")


async def test_a_dry_run_counts_a_message_once_that_comes_twice(world: World) -> None:
    path = written(world.folder, ROME, WHERE, ROME, WHERE, LATIUM)
    told = await world.told(f"/import {path} --dry-run")
    assert told.endswith("Of the messages, 1 are in the log already and 2 are new. Nothing was changed.")


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    """A folder with a card, in a world whose cards know the user's name."""
    world.personas.config_file.write_text('{"defaults": {"user_name": "User"}}')
    made = tmp_path / "characters"
    made.mkdir()
    (made / "mira.png").write_bytes(picture(text_chunk("chara", card(2))))
    return made


async def test_a_card_beside_conversations_is_no_file_of_an_unknown_format(world: World, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.png").write_bytes(picture())
    written(folder, ROME, WHERE)
    told = await world.told(f"/import {folder}")
    assert told.startswith(CREATED)
    assert "Skipped: file of an unknown format (1)." in told


async def test_a_persona_is_told_although_another_file_cannot_be_read(world: World, folder: Path) -> None:
    told = list[str]()
    with world.services.notifier.heard_by(told.append, told.append):
        refused = await world.told(f"/import {folder / 'mira.png'} /nowhere")
    assert refused == "/nowhere cannot be read: No such file or directory."
    assert [each[: len(CREATED)] for each in told] == [CREATED]
