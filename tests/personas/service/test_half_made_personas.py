"""A persona whose making was cut off and whose folder was edited since has nothing of an earlier one of its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from chorus_cli.log.rows import intents
from chorus_cli.log.rows.intents import Intent
from chorus_cli.personas import files as persona_files
from chorus_cli.personas.rows import persona_rows
from chorus_cli.sessions.rows import leave_behind

if TYPE_CHECKING:
    from chorus_cli.storage.store import Connection
    from tests.world import World


class KilledError(Exception):
    """The end of a process, as far as its transaction can tell."""


def die(_: Connection) -> None:
    raise KilledError


async def test_an_edited_half_made_persona_stays_without_the_memory_of_an_earlier_one(world: World) -> None:
    await world.roster.create("Ada")
    await world.focus.turn_to("ada")
    await world.say("Old secrets")
    await world.carry_out("/remember The plumber comes on Friday")
    await world.focus.turn_to("chorus")
    await world.roster.archive("ada")
    await world.roster.delete("ada")
    intent = Intent("ada", "persona", {}, "before", "after", world.clock.now())
    with pytest.raises(KilledError):
        await world.store.write_in_steps(partial(intents.carry_out, intent=intent, present=lambda: "", work=die))
    persona_files.create(world.personas.folder, "ada", "{}")
    (told,) = await world.store.write(lambda c: list(persona_rows.settle(c, world.personas.folder, leave_behind)))
    assert told.startswith("The making of the persona ada was cut off: its folder was changed since and stays")
    await world.focus.turn_to("ada")
    assert await world.seen() == []
    assert "plumber" not in await world.told("/memory")
    await world.say("New day")
    assert await world.seen() == ["New day", "ok"]
