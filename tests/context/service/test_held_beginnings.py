"""Which message the requests of a conversation begin with, while older ones have no room in them."""

from __future__ import annotations

from dataclasses import replace

from chorus_cli.context.rules.plan import RequestPlan
from chorus_cli.context.rules.view import ContextSnapshot
from chorus_cli.context.service.context import Prefixes
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.models.rules.request import ModelRequest
from tests.fakes import START
from tests.world import World

OLD, NEW = (Message(id_, "chorus", 1, id_, Role.USER, "hello", START) for id_ in (1, 3))


async def snapshot_of(world: World) -> ContextSnapshot:
    return await world.context.snapshot(world.current.target(), world.clock.now())


def sending(snapshot: ContextSnapshot, *sent: Message, without: tuple[Message, ...] = ()) -> RequestPlan:
    begins_at = sent[0].id if sent and without else None
    return RequestPlan(snapshot, ModelRequest("", ()), sent, None, 0, 0, without, begins_at=begins_at)


async def test_a_beginning_is_held_while_something_has_no_room(world: World) -> None:
    held, here = Prefixes(), await snapshot_of(world)
    for plan, first in (
        (sending(here, OLD, NEW), None),
        (sending(here, NEW, without=(OLD,)), 3),
        (sending(here, OLD, NEW), None),
        (sending(here, NEW, without=(OLD,)), 3),
        (sending(here, without=(OLD, NEW)), None),
    ):
        held.hold(plan, START)
        assert held.request_start(here.request_settings.target, START, 0).first_message_id == first


async def test_each_conversation_has_a_beginning_of_its_own(world: World) -> None:
    held, here = Prefixes(), await snapshot_of(world)
    held.hold(sending(here, NEW, without=(OLD,)), START)
    target = here.request_settings.target._replace(thread_id=here.request_settings.target.thread_id + 1)
    elsewhere = replace(here, request_settings=replace(here.request_settings, target=target))
    assert held.request_start(elsewhere.request_settings.target, START, 0).first_message_id is None
    held.hold(sending(elsewhere, OLD), START)
    assert held.request_start(here.request_settings.target, START, 0).first_message_id == NEW.id
