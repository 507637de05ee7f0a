"""The tool that reads the output of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chorus_cli.tools.service import BUILT_IN
from tests.turns.service.tool_talk import call, calls, events_of, lines, results
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.storage.store import Store
    from tests.fakes import FakeClock, ScriptedModel


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, 10_000, Tools(BUILT_IN))


async def test_the_whole_output_of_a_job_can_be_read_by_its_own_persona_only(world: World) -> None:
    world.shell.enqueue(b"\x1b[31mone\x1b[0m\ntwo\n", code=2)
    job = world.services.jobs.start(world.current.target(), "make")
    await world.services.jobs.attend(job, lambda _piece: None)
    calls(world, call("job_output", {"id": 1}))
    assert lines(await events_of(world, "Read it.")) == ["job_output(1): 2 lines"]
    assert results(world)[-1] == "Job #1 (make), exit code 2, 0.0 s:\none\ntwo\n"

    await world.carry_out("/persona new other")
    await world.carry_out("/persona other")
    calls(world, call("job_output", {"id": 1}))
    await events_of(world, "Read it.")
    assert results(world)[-1] == "There is no job #1 here. /jobs lists those of this run."
