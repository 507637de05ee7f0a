"""A persona that is at work is not archived; the refusal says how to stop the work."""

from __future__ import annotations

import asyncio

from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from tests.world import World


def hold_replies(world: World, number: int) -> None:
    """Enqueue replies that do not end."""
    for _ in range(number):
        world.model.enqueue(TextDelta("half"), asyncio.Event(), ReplyEnd("stop"))


async def job_runs(world: World) -> None:
    world.shell.enqueue(asyncio.Event())
    await world.told("/run sleep 100")


async def test_a_persona_with_a_reply_and_a_job_is_archived_after_both_are_stopped(world: World) -> None:
    await world.told("/persona new Ada")
    hold_replies(world, 1)
    await world.told("/bg question")
    await job_runs(world)
    there = "Ada is still busy: 1 reply and 1 job. Stop them first: /thread kill 2 and /jobs kill 1."
    assert await world.told("/persona archive") == there
    await world.told("/persona chorus")
    refused = there.replace("first: ", "first: /persona ada, then ")
    assert await world.told("/persona archive ada") == refused

    await world.told("/persona ada")
    await world.told("/thread kill 2")
    assert await world.told("/persona archive") == "Ada is still busy: 1 job. Stop it first: /jobs kill 1."
    await world.told("/jobs kill 1")
    assert (await world.told("/persona archive")).startswith("Archived Ada.")


async def test_messages_that_wait_are_counted(world: World) -> None:
    await world.told("/persona new Ada")
    hold_replies(world, 2)
    await world.told("/bg question")
    here = world.current.target()
    await world.services.replies.send(here, "first")
    await world.services.replies.send(here, "second")
    await world.services.replies.send(here, "third")
    assert await world.told("/persona archive") == (
        "Ada is still busy: 2 replies and 2 waiting messages. Stop them first: /thread kill 1 and /thread kill 2."
    )
    await world.services.replies.close()


async def test_the_work_of_other_personas_does_not_matter(world: World) -> None:
    await world.told("/persona new Ada")
    await world.told("/persona chorus")
    await job_runs(world)
    assert "it stays" in await world.told("/persona archive chorus")
    assert (await world.told("/persona archive ada")).startswith("Archived Ada.")
    await world.services.jobs.close()
