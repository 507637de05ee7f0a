"""Jobs: their ends are told to the user, to the memory and, once, to the model."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from chorus_cli.core.errors import JobError, MessageRefusedError
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import plain
from chorus_cli.machine.ports import Leftover
from tests.world import World

FAILED = b"""\
============================= test session starts ==============================
FAILED tests/test_ring.py::test_ring - assert 1 == 2
========================= 1 failed, 4 passed in 0.12s ==========================
"""


async def in_foreground(world: World, command: str) -> list[str]:
    """Run a command in the foreground and return the lines about its end."""
    job = world.services.jobs.start(world.current.target(), command)
    return await world.services.jobs.attend(job, lambda _piece: None)


async def in_background(world: World, command: str) -> list[str]:
    """Run a command in the background and return the lines that the user is told when it ends."""
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        await world.carry_out(f"/run {command}")
        await all_ended(world)
        await asyncio.sleep(0)
    return [line for lines in told for line in lines.splitlines()]


async def all_ended(world: World) -> None:
    """Wait until no task attends a job any longer."""
    await asyncio.gather(*world.services.jobs._tasks.values())


def preamble_of(world: World) -> str:
    """Return the lines before the last message in the last request."""
    return world.asked()[-1][1].rpartition("\n\n")[0]


async def test_the_last_lines_go_once_with_the_next_message_of_the_thread(world: World) -> None:
    world.shell.enqueue(b"one\n", b"two\n", code=3)
    assert await in_foreground(world, "make") == [
        "Exit code 3 after 0.0 s.",
        "2 lines go with your next message; /undo keeps them back.",
    ]
    await world.carry_out("/thread new")
    await world.say("Hello")
    assert not preamble_of(world)
    await world.carry_out("/thread 1")
    await world.say("What is wrong?")
    assert preamble_of(world).splitlines() == [
        "Ended jobs:",
        "  #1 make: exit code 3 after 0.0 s. Its output, 2 lines:",
        "    one",
        "    two",
    ]
    await world.say("And now?")
    assert not preamble_of(world)


@pytest.mark.parametrize(
    ("output", "code", "lines"),
    [
        (b"", 0, []),
        (b"", 1, ["Exit code 1 after 0.0 s.", "Its end goes with your next message; /undo keeps it back."]),
        (b"a\n", 0, ["1 line goes with your next message; /undo keeps it back."]),
    ],
)
async def test_of_a_quick_success_only_the_lines_are_told(
    world: World, output: bytes, code: int, lines: list[str]
) -> None:
    world.shell.enqueue(output, code=code) if output else world.shell.enqueue(code=code)
    assert await in_foreground(world, "true") == lines


async def test_a_job_in_the_background_says_when_it_begins_and_when_it_ends(world: World) -> None:
    assert await world.told("/run pytest -q") == "Job #1 runs: pytest -q"
    await all_ended(world)
    assert await in_background(world, "make") == [
        "Job #2 (make): done after 0.0 s.",
        "1 line goes with your next message; /undo keeps it back.",
    ]


@pytest.mark.parametrize(
    ("away", "place"), [("/thread 1", ""), ("/thread new", "thread #1"), ("/persona frodo", "thread #1 of chorus")]
)
async def test_a_job_of_a_thread_that_was_left_names_it_and_not_undo(world: World, away: str, place: str) -> None:
    may_end = asyncio.Event()
    world.shell.enqueue(b"one\n", may_end)
    await world.persona_admin.create("Frodo")
    await world.carry_out("/run make")
    await world.carry_out(away)
    may_end.set()
    (lines,) = await asyncio.gather(*world.services.jobs._tasks.values())
    here = "1 line goes with your next message; /undo keeps it back."
    assert lines[-1] == (f"1 line goes with the next message in {place}." if place else here)


async def test_a_persona_made_anew_has_no_jobs_of_the_deleted_one(world: World) -> None:
    await world.carry_out("/persona new Frodo")
    await in_foreground(world, "make")
    world.shell.enqueue(b"serving\n", asyncio.Event())
    await world.carry_out("/run serve")
    await asyncio.sleep(0.01)
    await world.carry_out("/persona chorus")
    # Another Chorus does not know of the job.
    await world.persona_admin.archive("frodo")
    deleted = plain(await (await world.asked_back("/persona delete frodo")).confirmed())
    assert deleted.splitlines()[1:] == ["Job #2 (serve): stopped after 0.0 s."]
    await world.carry_out("/persona new Frodo")
    assert (await world.told("/jobs")).startswith("No job has run yet.")
    assert await world.told("/jobs log 1") == "There is no job #1 here. /jobs lists those of this run."
    assert (await world.told("/run make")).startswith("Job #3 runs")
    await all_ended(world)


async def test_a_running_job_is_told_after_the_pause_and_before_the_memory(world: World) -> None:
    may_end = asyncio.Event()
    world.shell.enqueue(b"collecting\n", may_end)
    await world.carry_out("/run pytest -q")
    await asyncio.sleep(0.01)
    world.clock.advance(timedelta(seconds=12))
    await world.say("How is it going?")
    assert preamble_of(world) == "Running jobs:\n  #1 pytest -q (12 s), last line: collecting"
    await world.told("/memory add TASK water the fuchsia")
    world.clock.advance(timedelta(hours=2))
    await world.say("Is the fuchsia fine?")
    assert preamble_of(world).partition("]\n")[2] == (
        "Running jobs:\n  #1 pytest -q (2 h), last line: collecting\nFrom memory:\n#1 TASK: water the fuchsia"
    )
    assert world.services.jobs.running_count == 1
    may_end.set()
    await all_ended(world)
    assert world.services.jobs.running_count == 0


async def test_a_model_that_has_no_room_for_running_jobs_is_asked_without_them(world: World) -> None:
    world.configure('{"context_token_limit": 1000}')
    for _ in range(10):
        world.shell.enqueue(asyncio.Event())
        await world.carry_out("/run a b c d e f g h i j k l m n o p")
    for words, is_told in ((100, True), (530, False)):
        await world.say("word " * words)
        assert world.asked()[-1][1].startswith("Running jobs:") is is_told
    await world.services.jobs.close()


async def test_undo_right_after_a_job_keeps_its_output_back(world: World) -> None:
    await world.say("Hello")
    world.clock.advance(timedelta(minutes=1))
    await in_foreground(world, "make")
    told = await world.told("/undo")
    assert told == "Kept back: the output of job #1 (make) does not go with your next message. /jobs log shows it."
    await world.say("What now?")
    assert world.asked()[-1] == ("user", "What now?")
    assert len(await world.seen()) == 4


async def test_undo_keeps_output_back_where_nothing_was_said_yet(world: World) -> None:
    await in_foreground(world, "make")
    assert (await world.told("/undo")).startswith("Kept back: ")
    assert await world.told("/undo") == "There is nothing to undo here."


async def test_undo_of_a_message_brings_back_the_output_that_went_with_it_and_redo_takes_it_again(world: World) -> None:
    await in_foreground(world, "make")
    world.clock.advance(timedelta(minutes=1))
    await world.say("What is that?")
    told = await world.told("/undo")
    assert told.endswith("The output of job #1 goes with your next message again.")
    await world.carry_out("/redo")
    await world.say("And that?")
    assert not preamble_of(world)
    for _ in range(2):
        await world.carry_out("/undo")
    await world.say("Say it again.")
    assert "#1 make" in preamble_of(world)


async def test_a_message_that_is_refused_leaves_the_output_for_the_next_one(world: World) -> None:
    await in_foreground(world, "make")
    with pytest.raises(MessageRefusedError):
        await world.say("word " * 20_000)
    await world.say("Short")
    assert "#1 make" in preamble_of(world)


async def test_output_without_room_in_the_model_is_left_out_of_its_line(world: World) -> None:
    world.shell.enqueue(*[b"a b c d e f g h\n"] * 50)
    await in_foreground(world, "make")
    room = (await world.context.planned(world.current.target(), world.clock.now())).snapshot.budget.room.budget
    await world.say("word " * (room - 300))
    assert preamble_of(world).splitlines()[-1].endswith("Its output was left out here.")


async def test_errors_and_results_of_tests_in_the_output_are_captured(world: World) -> None:
    world.shell.enqueue(FAILED, code=1)
    _, captured, _ = await in_foreground(world, "pytest")
    assert captured.startswith("Remembered #1 TEST_RESULT ")
    (item,) = await world.services.memory.listing("chorus")
    assert "1 failed, 4 passed" in item.content
    assert item.source_message_id is None
    assert (await world.told("/undo")).startswith("Kept back")
    assert (await world.told("/undo")).startswith("Undone: captured #1 ")
    assert not await world.services.memory.listing("chorus")


async def test_a_job_that_fails_says_what_was_withheld(world: World) -> None:
    world.shell.withheld = ("OPENAI_API_KEY",)
    world.shell.enqueue(code=1)
    assert "It ran without OPENAI_API_KEY: jobs get no keys or passwords." in (await in_foreground(world, "make"))[0]
    assert not any("ran without" in line for line in await in_foreground(world, "true"))


async def test_a_stopped_job_is_answered_for_by_the_command_that_stopped_it(world: World) -> None:
    for command in ("sleep 100", "yes"):
        world.shell.enqueue(b"begun\n", asyncio.Event())
        await world.carry_out(f"/run {command}")
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        answer = await world.told("/jobs kill #2")
        assert answer.startswith("Job #2 (yes): stopped after ")
        assert (await world.told("/jobs kill all")).startswith("Job #1 (sleep 100): stopped after ")
    assert told == []
    assert await world.told("/jobs kill 1") == "Job #1 has ended already: stopped."
    assert await world.told("/jobs kill all") == "No job runs."
    assert await world.told("/jobs kill 9") == "There is no job #9 here. /jobs lists those of this run."


async def test_the_jobs_are_listed_and_their_output_shown(world: World) -> None:
    assert (await world.told("/jobs")).startswith("No job has run yet.")
    world.shell.enqueue(b"one\ntwo\n", code=1)
    await in_background(world, "make all")
    row = (await world.told("/jobs")).splitlines()[-1]
    assert " ".join(row.split()) == "#1 exit code 1 0.0 s two make all"
    assert await world.told("/jobs log 1") == "one\ntwo"
    assert "/run needs <command>. Usage: /run <command>, for example: /run pytest -q" in await world.told("/run")


async def test_the_jobs_of_all_personas_are_listed_shown_and_stopped(world: World) -> None:
    await in_foreground(world, "make")
    world.shell.enqueue(b"begun\n", asyncio.Event())
    await world.carry_out("/run yes")
    await world.carry_out("/persona new Ada")
    assert "Persona" not in await world.told("/jobs")
    await in_foreground(world, "ls")
    heads, *rows = [" ".join(row.split()) for row in (await world.told("/jobs")).splitlines()]
    assert (heads, rows[0], rows[2]) == (
        "Job Persona State Time Last line Command",
        "#1 chorus done 0.0 s ok make",
        "#3 Ada done 0.0 s ok ls",
    )
    assert await world.told("/jobs log 2") == "begun"
    assert (await world.told("/jobs kill all")).startswith("Job #2 (yes): stopped after ")


async def test_numbers_are_completed_with_their_commands(world: World) -> None:
    await in_background(world, "make")
    world.shell.enqueue(asyncio.Event())
    await world.carry_out("/run sleep 100")
    logs = completions(world.services.registry, world.services, "/jobs log ").candidates
    assert [(each.text, each.description) for each in logs] == [("2", "running: sleep 100"), ("1", "done: make")]
    kills = completions(world.services.registry, world.services, "/jobs kill ").candidates
    assert [each.text for each in kills] == ["2", "all"]
    await world.services.jobs.close()


async def test_jobs_that_run_at_the_exit_are_stopped_and_named(world: World) -> None:
    await in_background(world, "make")
    world.shell.enqueue(asyncio.Event(), left=(Leftover(42, "daemon", is_in_group=False),))
    await world.carry_out("/run server")
    await asyncio.sleep(0.01)
    assert await world.services.jobs.close() == [
        "Stopped job #2: server",
        "Left job #2 and runs on by itself: daemon (process 42).",
    ]
    assert all(process.closed for process in world.shell.processes)
    assert await world.services.jobs.close() == []


async def test_processes_left_in_the_group_are_named_and_stopped_by_their_job(world: World) -> None:
    world.shell.enqueue(left=(Leftover(42, "server", is_in_group=True),))
    (line,) = await in_foreground(world, "server &")
    assert line == "Still running: server (process 42). Ends with Chorus, or by /jobs kill 1."
    assert not world.shell.processes[0].closed
    assert await world.told("/jobs kill 1") == "Stopped the processes that job #1 left running."
    assert world.shell.processes[0].closed


async def test_a_failing_screen_kills_the_command(world: World) -> None:
    def broken(_piece: bytes) -> None:
        raise JobError("The screen is gone.")

    world.shell.enqueue(b"a\n", asyncio.Event())
    job = world.services.jobs.start(world.current.target(), "yes")
    with pytest.raises(JobError, match="The screen is gone"):
        await world.services.jobs.attend(job, broken)
    assert job.state == "killed by SIGKILL"
