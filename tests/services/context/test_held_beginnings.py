"""Which message the requests of a conversation begin with, while older ones have no room in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.context.plan import Foundation, Prompt
from chorus_cli.core.log.messages import Message, Role
from chorus_cli.services.context.held_beginnings import HeldBeginnings
from tests.fakes import START

if TYPE_CHECKING:
    from tests.services.world import World

OLD, NEW = (Message(id_, "chorus", 1, id_, Role.USER, "hello", START) for id_ in (1, 3))


def sending(*sent: Message, without: tuple[Message, ...] = ()) -> Prompt:
    return Prompt((), sent, without, Foundation("Be kind.", 2, 0), 0)


async def test_a_beginning_is_held_while_something_has_no_room(world: World) -> None:
    held, here = HeldBeginnings(), world.focus.target()
    for prompt, first in (
        (sending(OLD, NEW), None),
        (sending(NEW, without=(OLD,)), 3),
        (sending(OLD, NEW), None),
        (sending(NEW, without=(OLD,)), 3),
        (sending(without=(OLD, NEW)), None),
    ):
        held.hold(here, prompt)
        assert held.first(here) == first


async def test_each_conversation_has_a_beginning_of_its_own(world: World) -> None:
    held, here = HeldBeginnings(), world.focus.target()
    held.hold(here, sending(NEW, without=(OLD,)))
    elsewhere = replace(here, thread_id=here.thread_id + 1)
    assert held.first(elsewhere) is None
    held.hold(elsewhere, sending(OLD))
    assert held.first(here) == NEW.id
