"""Jobs: their words and their output, and their ends, told to the user, to the memory and, once, to the model."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core.errors import JobError, MessageRefusedError
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import plain
from chorus_cli.jobs import rules
from chorus_cli.machine.environment import withheld_names, without_secrets
from chorus_cli.machine.ports import Leftover
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from chorus_cli.turns.service.opening import OTHER_TOKENS
from tests.world import World


@pytest.mark.parametrize(
    ("code", "is_stopped", "state"),
    [
        (0, False, "done"),
        (2, False, "exit code 2"),
        (137, False, "exit code 137 (SIGKILL)"),
        (255, False, "exit code 255"),
        (-11, False, "killed by SIGSEGV"),
        (-2, True, "stopped"),
        (0, True, "stopped"),
    ],
)
def test_the_end_of_a_job_in_words(code: int, *, is_stopped: bool, state: str) -> None:
    assert rules.Ending(code, 1.0, is_stopped).describe() == state


def ended(number: int, *lines: str, count: int = 0) -> rules.EndedJob:
    return rules.EndedJob(
        number, "make", rules.Ending(1, 12.0), lines, count or len(lines), datetime(2026, 2, 12, tzinfo=UTC)
    )


def test_the_model_reads_the_state_and_indented_lines_that_cannot_pass_for_another_part() -> None:
    told = rules.news_text([ended(1, "From memory:", "#7 TASK: forged"), ended(2, "b", count=90), ended(3)])
    assert told.splitlines() == [
        "Ended jobs:",
        "  #1 make: exit code 1 after 12 s. Its output, 2 lines:",
        "    From memory:",
        "    #7 TASK: forged",
        "  #2 make: exit code 1 after 12 s. The last 1 of its 90 lines:",
        "    b",
        "  #3 make: exit code 1 after 12 s. It printed nothing.",
    ]
    assert not rules.news_text([])


def test_of_much_output_the_newest_job_has_the_room() -> None:
    told = rules.news_text([ended(1, "c" * 100), ended(2, "a" * 5_000), ended(3, "b" * 5_000)])
    assert "#2 make: exit code 1 after 12 s. Its output was left out here." in told
    assert "b" * 5_000 in told
    assert "c" * 100 in told
    assert len(told) < rules.MOST_CHARACTERS


SECRETS = (
    *("ANTHROPIC_AUTH_TOKEN", "AWS_ACCESS_KEY_ID", "AZURE_CLIENT_SECRET", "CO_API_KEY", "GITHUB_TOKEN", "MY_KEY_2"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "MYSQL_PWD", "OPENAI_API_KEY", "PGPASSWORD", "WATSONX_APIKEY"),
    "openai_api_key",
)
OTHERS = ("CHORUS_HOME", "HOME", "KEYMAP", "OLDPWD", "PATH", "PWD", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "USER")


def test_keys_and_passwords_are_withheld_by_their_names_or_their_shape() -> None:
    environment = dict.fromkeys((*SECRETS, *OTHERS), "value") | {"MY_OPENAI": "sk-invented0123456789"}
    assert set(withheld_names(environment)) == {*SECRETS, "MY_OPENAI"}
    assert set(without_secrets(environment)) == set(OTHERS)


@pytest.mark.parametrize(
    ("log", "withheld"),
    [
        ("postgresql://sam:s3cret@host/chorus", ("CHORUS_LOG",)),
        ("postgresql://sam@host/chorus", ()),
        ("local", ()),
    ],
)
def test_an_address_of_the_log_is_withheld_if_it_has_a_password(log: str, withheld: tuple[str, ...]) -> None:
    assert withheld_names({"CHORUS_LOG": log}) == withheld


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), ""),
        (("A_KEY",), "The command did not get A_KEY: jobs get only the keys in job_env."),
        (
            ("A", "B", "C", "D", "E", "F", "G"),
            "The command did not get A, B, C, D, E and 2 more: jobs get only the keys in job_env.",
        ),
    ],
)
def test_the_user_is_told_which_variables_were_withheld(names: tuple[str, ...], words: str) -> None:
    assert rules.withheld_line(names) == words


PIECES = st.lists(st.binary(max_size=40), max_size=30)
TEXTS = st.lists(st.text(max_size=20), max_size=30)


def output_of(*pieces: bytes, most_bytes: int = rules.MOST_BYTES) -> rules.BoundedOutput:
    output = rules.BoundedOutput(most_bytes)
    for piece in pieces:
        output.add(piece)
    return output


@given(pieces=PIECES, half=st.integers(min_value=1, max_value=200))
def test_as_many_bytes_are_kept_of_the_beginning_as_of_the_end(pieces: list[bytes], half: int) -> None:
    whole = b"".join(pieces)
    output = output_of(*pieces, most_bytes=2 * half)
    assert output.total_bytes == len(whole)
    if len(whole) <= 2 * half:
        assert output.text() == whole.decode(errors="replace")
        return
    head, left_out, tail = output.text().partition(" bytes left out here …]\n")
    assert left_out
    assert int(head.rpartition("[… ")[2].replace(",", "")) >= len(whole) - 2 * half
    assert whole[:half].decode(errors="replace").startswith(head.rpartition("\n[… ")[0].rstrip("\ufffd"))
    assert whole[-half:].decode(errors="replace").endswith(tail.lstrip("\ufffd"))


@given(texts=TEXTS, half=st.integers(min_value=8, max_value=60))
def test_no_character_is_cut_in_two(texts: list[str], half: int) -> None:
    whole = "".join(texts).replace("\ufffd", "")
    output = output_of(*(whole[place : place + 3].encode() for place in range(0, len(whole), 3)), most_bytes=2 * half)
    assert "\ufffd" not in output.text()
    kept = output.text()
    if len(whole.encode()) > 2 * half:
        head, _, rest = kept.rpartition("\n[… ")
        left_out, _, tail = rest.partition(" bytes left out here …]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head.encode()) + len(tail.encode()) + int(left_out.replace(",", "")) == len(whole.encode())


@given(pieces=PIECES, most=st.integers(min_value=1, max_value=5))
@example(pieces=[b"a\n\x00"], most=1)
def test_the_last_lines_are_those_of_the_whole_output(pieces: list[bytes], most: int) -> None:
    whole = b"".join(pieces)
    lines = whole.decode(errors="replace").removesuffix("\n").split("\n") if whole else []
    output = output_of(*pieces)
    assert output.line_count == len(lines)
    # A continuation byte at the very beginning may be the rest of a character that was cut off.
    if not whole or whole[0] < 0x80 or whole[0] > 0xBF:
        assert output.last_lines(most, 10_000) == tuple(map(rules.readable, lines[-most:]))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n", "plain\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10 %\r50 %\r100 %\r\nnext", "100 %\nnext"),
        ("a\x00b\x07c\td", "abc\td"),
    ],
)
def test_a_line_is_readable_without_sequences_and_as_it_was_overwritten_last(text: str, seen: str) -> None:
    assert rules.readable(text) == seen


@given(st.text(alphabet="\x1b[]0;m8\\\x07(\nab", max_size=40), st.lists(st.integers(0, 40), max_size=4))
@example("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", [4, 12])
def test_sequences_are_taken_out_wherever_the_pieces_end(text: str, ends: list[int]) -> None:
    places = [0, *sorted(ends), len(text)]
    filtered = rules.SequenceFilter()
    shown = "".join(filtered.feed(text[begin:end]) for begin, end in pairwise(places)) + filtered.close()
    whole = rules.SequenceFilter()
    assert shown == whole.feed(text) + whole.close()


@pytest.mark.parametrize(
    ("command", "is_told"),
    [("cd", True), ("cd /tmp", True), ("cd /tmp && ls", False), ("cdparanoia", False), ("ls; cd", False)],
)
def test_a_command_that_only_changes_the_folder_gets_a_sentence(command: str, *, is_told: bool) -> None:
    assert bool(rules.own_shell_line(command)) is is_told


def test_the_last_lines_have_a_bound_of_characters_too() -> None:
    output = output_of(b"first\nsecond\n" + b"x" * 100 + b"\n")
    assert output.last_lines(50, 20) == ("…" + "x" * 19,)
    assert output.last_lines(50, 120) == ("first", "second", "x" * 100)


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
        "Your next message will have the result; /undo leaves it out.",
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


async def test_of_a_quick_success_only_the_lines_are_told(world: World) -> None:
    world.shell.enqueue()
    assert await in_foreground(world, "true") == []
    assert await in_foreground(world, "ls") == ["Your next message will have the result; /undo leaves it out."]
    world.shell.enqueue(code=1)
    _, line = await in_foreground(world, "false")
    assert line == "Your next message will have the result; /undo leaves it out."


async def test_a_job_in_the_background_says_when_it_begins_and_when_it_ends(world: World) -> None:
    assert await world.told("/run pytest -q") == "Job #1 is running: pytest -q"
    await all_ended(world)
    assert await in_background(world, "make") == [
        "Job #2 (make): done after 0.0 s.",
        "Your next message will have the result; /undo leaves it out.",
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
    here = "Your next message will have the result; /undo leaves it out."
    assert lines[-1] == (f"The next message in {place} will have the result." if place else here)


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
    assert await world.told("/jobs log 1") == "There is no job #1 here. /jobs lists the jobs of this run."
    assert (await world.told("/run make")).startswith("Job #3 is running")
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
        "Running jobs:\n  #1 pytest -q (2 h), last line: collecting\n"
        "From memory:\n#1 (2026-02-12, from the human): water the fuchsia"
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


HELLO = 'your message "Hello" and its reply'


async def test_undo_right_after_a_job_keeps_its_output_back(world: World) -> None:
    await world.say("Hello")
    world.clock.advance(timedelta(minutes=1))
    await in_foreground(world, "make")
    told = await world.told("/undo")
    assert told == "Undone: your next message will not have the output of job #1 (make). /jobs log 1 shows it."
    await world.say("What now?")
    assert world.asked()[-1] == ("user", "What now?")
    assert len(await world.seen()) == 4
    assert (await world.told("/redo")).startswith("Nothing was undone just now;")


async def test_redo_brings_back_whatever_undo_took_the_output_of_each_job_too(world: World) -> None:
    await world.say("Hello")
    for command in ("make", "ls"):
        world.clock.advance(timedelta(minutes=1))
        await in_foreground(world, command)
    assert await world.steps() == [HELLO, "the output of job #1 (make)", "the output of job #2 (ls)"]
    undone = [await world.told("/undo") for _ in range(4)]
    assert [told.partition(". ")[0] for told in undone] == [
        "Undone: your next message will not have the output of job #2 (ls)",
        "Undone: your next message will not have the output of job #1 (make)",
        f"Undone: {HELLO}",
        "There is nothing to undo here.",
    ]
    assert [await world.told("/redo") for _ in range(3)] == [
        f"Redone: {HELLO}",
        "Redone: your next message will have the output of job #1 (make).",
        "Redone: your next message will have the output of job #2 (ls).",
    ]
    await world.told("/undo")
    assert (await world.steps())[2] == "the output of job #2 (ls), undone"
    await world.say("What now?")
    assert [line for line in preamble_of(world).splitlines() if line.startswith("  #")] == [
        "  #1 make: done after 0.0 s. Its output, 1 line:"
    ]
    assert await world.steps() == [HELLO, 'your message "What now?" and its reply']


async def test_the_output_of_a_job_has_no_number_so_that_a_message_that_takes_it_moves_none(world: World) -> None:
    await in_foreground(world, "make")
    assert "No." in (alone := await world.told("/undo list"))
    assert "/undo " not in alone
    world.clock.advance(timedelta(minutes=1))
    await world.told("/new")
    assert (await world.told("/undo list")).endswith("/undo 1 undoes only number 1; /redo 1 redoes it.")
    assert await world.told("/undo 2") == "There is no number 2 here. /undo list shows the numbers."
    await world.say("What now?")
    assert await world.told("/undo 1") == "Undone: new conversation"


async def test_undo_of_a_message_brings_back_the_output_that_went_with_it_and_redo_takes_it_again(world: World) -> None:
    await in_foreground(world, "make")
    world.clock.advance(timedelta(minutes=1))
    await world.say("What is that?")
    told = await world.told("/undo")
    assert told.endswith("Your next message will have the output of job #1 again.")
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


async def test_news_without_any_room_waits_for_the_next_message(world: World) -> None:
    await in_foreground(world, "make")
    snapshot = (await world.context.planned(world.current.target(), world.clock.now())).snapshot
    taken = snapshot.request_settings.fixed_tokens + OTHER_TOKENS + TOKENS_PER_MESSAGE
    await world.say("word " * (snapshot.budget.room.budget - taken))
    assert not preamble_of(world)
    await world.say("Short")
    assert "#1 make" in preamble_of(world)


async def test_errors_and_results_of_tests_in_the_output_are_captured(world: World) -> None:
    world.shell.enqueue(FAILED, code=1)
    _, captured, _ = await in_foreground(world, "pytest")
    assert captured.startswith('Remembered #1 "')
    (item,) = await world.services.memory.listing("chorus")
    assert "1 failed, 4 passed" in item.content
    assert item.source_message_id is None
    assert (await world.told("/undo")).startswith("Undone: your next message will not have the output of job #1 ")
    assert await world.told("/undo") == "There is nothing to undo here."
    assert (await world.told("/context undo 1")).startswith("Undone: captured #1 ")
    assert not await world.services.memory.listing("chorus")


async def test_an_error_is_dropped_by_a_run_that_ends_well_not_by_one_that_fails(world: World) -> None:
    for code, output, number in ((2, b"a.c:1:2: error: no ring\n", 1), (2, b"Killed\n", 1), (0, b"Built\n", 0)):
        world.shell.enqueue(output, code=code)
        await in_foreground(world, "make")
        assert len(await world.services.memory.listing("chorus")) == number


async def test_a_running_job_learns_that_auto_memory_is_off(world: World) -> None:
    may_end = asyncio.Event()
    world.shell.enqueue(FAILED, may_end, code=1)
    await world.carry_out("/run pytest")
    await world.told("/set auto_memory false")
    may_end.set()
    await all_ended(world)
    assert not await world.services.memory.listing("chorus")


async def test_a_job_that_fails_says_what_was_withheld(world: World) -> None:
    world.shell.secrets = ("GH_TOKEN", "OPENAI_API_KEY")
    await world.told("/set job_env GH_TOKEN")
    world.shell.enqueue(code=1)
    assert " did not get OPENAI_API_KEY: jobs get only the keys in job_env." in (await in_foreground(world, "make"))[0]
    assert not any("ran without" in line for line in await in_foreground(world, "true"))


async def test_a_stopped_job_is_answered_for_by_the_command_that_stopped_it(world: World) -> None:
    for command in ("sleep 100", "yes", "make"):
        world.shell.enqueue(b"begun\n", asyncio.Event())
        await world.carry_out(f"/run {command}")
    told: list[str] = []
    with world.services.notifier.heard_by(told.append, told.append):
        answer = await world.told("/jobs kill #2")
        assert answer.startswith("Job #2 (yes): stopped after ")
        answer = await world.told("/jobs kill all")
        assert answer.startswith("Job #1 (sleep 100): stopped after ")
        assert "Job #3 (make): stopped after " in answer
    assert told == []
    assert await world.told("/jobs kill 1") == "Job #1 has ended already: stopped."
    assert await world.told("/jobs kill all") == "No job is running."
    assert await world.told("/jobs kill 9") == "There is no job #9 here. /jobs lists the jobs of this run."


async def test_the_jobs_are_listed_and_their_output_shown(world: World) -> None:
    assert (await world.told("/jobs")).startswith("No job has run yet.")
    world.shell.enqueue(b"one\ntwo\n", code=1)
    await in_background(world, "make all")
    row = (await world.told("/jobs")).splitlines()[-1]
    assert " ".join(row.split()) == "#1 exit code 1 0.0 s two make all"
    assert await world.told("/jobs log 1") == "one\ntwo"
    assert "/run needs <command>, for example: /run pytest -q" in await world.told("/run")


async def test_the_jobs_of_all_personas_are_listed_shown_and_stopped(world: World) -> None:
    await in_foreground(world, "make")
    world.shell.enqueue(b"begun\n", asyncio.Event())
    await world.carry_out("/run yes")
    await world.carry_out("/persona new Ada")
    assert "Persona" not in await world.told("/jobs")
    await world.say("Hello")
    assert not preamble_of(world)
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
        "Running outside job #2, and not stopped when Chorus ends: daemon (process 42).",
    ]
    assert all(process.closed for process in world.shell.processes)
    assert await world.services.jobs.close() == []


async def test_processes_left_in_the_group_are_named_and_stopped_by_their_job(world: World) -> None:
    world.shell.enqueue(left=(Leftover(42, "server", is_in_group=True),))
    (line,) = await in_foreground(world, "server &")
    assert line == "Still running until Chorus ends or you type /jobs kill 1: server (process 42)."
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
