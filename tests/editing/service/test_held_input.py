"""Input that waits to be sent is in a row as soon as its writing is over, which keeps no key waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.text.command_signs import typed_line, unescaped_line
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import NO_RUN, Left, Unsaid
from chorus_cli.editing.service.unsent import UnsentInput, joined
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock

_REFUSED = "CREATE TEMP TRIGGER no_{0} BEFORE {0} ON outbox BEGIN SELECT RAISE(ABORT, 'not today'); END"


async def kept(store: Store) -> list[str]:
    return await store.read(
        lambda c: [text for (text,) in c.execute("SELECT content FROM outbox ORDER BY id").fetchall()]
    )


async def refuse(store: Store) -> None:
    for change in ("INSERT", "UPDATE"):
        await store.write(lambda connection, change: connection.execute(_REFUSED.format(change)) and None, change)


def run_of(store: Store, clock: FakeClock, run: str, *alive: str) -> UnsentInput:
    """Input of which the line being typed is kept at once."""
    unsent = UnsentInput(store, run, clock, lambda each: each in alive, lambda _record: None)
    unsent.held_seconds = 0.01
    return unsent


@pytest.fixture
def typing(store: Store, clock: FakeClock) -> UnsentInput:
    return run_of(store, clock, "1-ab")


async def held(typing: UnsentInput) -> None:
    """Wait until the line is kept."""
    await asyncio.sleep(0.05)
    await typing.written()


async def holds(unsent: UnsentInput, slug: str, typed: str) -> None:
    unsent.hold(slug, typed)
    await unsent.written()


async def taken_up(unsent: UnsentInput, slug: str = "frodo", stored: str = "") -> str:
    """Return the text that comes back to the first prompt."""
    await unsent.take_up(slug, stored)
    if unsent.is_put_off(slug):
        unsent.bring_back(slug)
        await unsent.written()
    return unsent.text


async def test_a_slow_disk_keeps_no_key_waiting(store: Store, typing: UnsentInput) -> None:
    gate = threading.Event()

    def wait(_connection: Connection) -> None:
        gate.wait(10)

    busy = asyncio.ensure_future(store.read(wait))
    await asyncio.sleep(0)
    for text in ("on", "on we", "on we go"):
        typing.hold("frodo", text)
    writing = asyncio.ensure_future(typing.written())
    await asyncio.sleep(0.01)
    assert not writing.done()
    gate.set()
    await busy
    await typing.written()
    assert await kept(store) == ["on we go"]
    await holds(typing, "frodo", "")
    assert await kept(store) == []


async def test_input_that_a_signal_interrupts_is_kept_before_the_end(store: Store, typing: UnsentInput) -> None:
    typing.hold("frodo", "typed ahead")
    await typing.keep("frodo", "typed ahead and more")
    assert await kept(store) == ["typed ahead and more"]


async def test_the_line_being_typed_is_kept_with_its_changes_and_without_a_change_nothing_is_written(
    store: Store, typing: UnsentInput
) -> None:
    typing.hold_soon("frodo", "on")
    typing.hold_soon("frodo", "on we")
    assert await kept(store) == []
    await held(typing)
    assert await kept(store) == ["on we"]
    await refuse(store)
    typing.hold_soon("frodo", "on we go")
    typing.hold_soon("frodo", "on we")
    await held(typing)
    assert (await typing.keep("frodo", "on we"), await kept(store)) == ("", ["on we"])


@pytest.mark.parametrize("typed", ["", " \n", "/private a word"])
async def test_a_line_that_was_deleted_or_is_private_is_not_kept(store: Store, typing: UnsentInput, typed: str) -> None:
    typing.hold_soon("frodo", "on we go")
    await held(typing)
    typing.hold_soon("frodo", typed)
    await held(typing)
    assert await kept(store) == []


async def test_lines_behind_one_that_begins_a_private_chat_are_not_kept(store: Store, typing: UnsentInput) -> None:
    await holds(typing, "frodo", "on we go\n/private\nnot this")
    assert await kept(store) == ["on we go\n"]
    typing.send("frodo", "on\n/private", "not this")
    await typing.written()
    assert await kept(store) == ["on\n"]


async def test_a_line_that_came_back_belongs_to_the_chat_that_has_it(store: Store, clock: FakeClock) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    first, second = run_of(store, clock, "2-ab"), run_of(store, clock, "3-ab", "2-ab")
    assert await taken_up(first) == "on we go"
    assert await taken_up(second) == ""
    first.hold_soon("frodo", "on we go again")
    await held(first)
    assert await kept(store) == ["on we go again"]
    third = run_of(store, clock, "4-ab")
    assert await taken_up(third) == "on we go again"


async def test_a_line_that_is_put_off_outlives_the_lines_before_it(store: Store, clock: FakeClock) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    unsent = run_of(store, clock, "2-ab")
    await unsent.take_up("frodo")
    assert (unsent.text, unsent.is_put_off("frodo"), unsent.is_put_off("sam")) == ("", True, False)
    await unsent.keep("frodo", "hello")
    assert await kept(store) == ["on we go", "hello"]
    unsent.bring_back("frodo")
    assert (unsent.text, unsent.is_put_off("frodo")) == ("on we go", False)
    await holds(unsent, "frodo", "")
    assert await kept(store) == []


async def test_a_line_that_is_put_off_comes_back_to_its_own_persona_alone(store: Store, clock: FakeClock) -> None:
    unsent = run_of(store, clock, "1-ab")
    for slug, unsent.text in (("frodo", "on we go"), ("sam", "po-tay-toes")):
        unsent.put_off(slug)
    unsent.bring_back("sam")
    await unsent.written()
    assert (unsent.text, unsent.is_put_off("frodo"), await kept(store)) == (
        "po-tay-toes",
        False,
        ["on we go", "po-tay-toes"],
    )
    unsent.settle()
    assert unsent.is_put_off("frodo")


async def test_a_line_that_is_put_off_comes_back_with_the_newer_one(store: Store, clock: FakeClock) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    killed = run_of(store, clock, "2-ab")
    await killed.take_up("frodo")
    await killed.keep("frodo", "hello")
    next_run, last = run_of(store, clock, "3-ab"), run_of(store, clock, "4-ab", "3-ab")
    assert await taken_up(next_run) == "on we go\nhello"
    assert await taken_up(last) == ""


async def test_a_line_that_is_sent_is_kept_with_the_input_behind_it_until_it_is_stored(
    store: Store, typing: UnsentInput
) -> None:
    typing.send("frodo", "on we go", "and on")
    await typing.written()
    assert await kept(store) == ["on we go", "and on"]
    typing.hold_soon("frodo", "and on we go")
    await held(typing)
    assert await kept(store) == ["on we go", "and on we go"]
    typing.release()
    await typing.written()
    assert await kept(store) == ["and on we go"]


async def test_a_line_that_was_refused_is_kept_for_the_next_prompt(store: Store, typing: UnsentInput) -> None:
    typing.send("frodo", "on we go", "and on")
    typing.text = "on we go"
    typing.release()
    await typing.written()
    assert await kept(store) == ["on we go\nand on"]


async def test_a_line_that_is_sent_is_kept_once_if_a_signal_comes(store: Store, typing: UnsentInput) -> None:
    typing.send("frodo", "on we go", "")
    await held(typing)
    await typing.keep("frodo", "on we go")
    assert await kept(store) == ["on we go"]


async def test_a_line_that_is_sent_or_stored_at_once_is_never_written(store: Store, typing: UnsentInput) -> None:
    await refuse(store)
    typing.hold_soon("frodo", "on we go")
    assert (await typing.keep("frodo", ""), await kept(store)) == ("", [])
    typing.send("frodo", "on we go", "")
    typing.release()
    await held(typing)
    assert await typing.keep("frodo", "") == ""


async def test_a_text_is_offered_to_the_persona_that_it_was_typed_for(store: Store, clock: FakeClock) -> None:
    typing = run_of(store, clock, "1-ab")
    typing.hold("frodo", "hello")
    await holds(typing, "sam", "hello")
    frodo, sam = run_of(store, clock, "2-ab"), run_of(store, clock, "3-ab")
    assert await taken_up(frodo) == ""
    assert await taken_up(sam, "sam") == "hello"


async def test_a_line_that_another_start_claims_meanwhile_is_left_to_it(store: Store, clock: FakeClock) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    left = await store.read(outbox_rows.left_by_ended, lambda _run: False)
    assert await store.write(outbox_rows.claim, left, "2-ab", clock.now()) == (Unsaid("frodo", "on we go"),)
    assert await store.write(outbox_rows.claim, left, "3-ab", clock.now()) == ()
    assert await store.read(outbox_rows.left_by_ended, lambda run: run == "2-ab") == ()


async def test_after_seven_days_a_line_that_nobody_wanted_is_deleted_and_a_text_that_the_log_refused_stays(
    store: Store, clock: FakeClock
) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    refused = Left(Unsaid("frodo", "refused", is_sent=True), clock.now(), f"{NO_RUN}a-file")
    await store.write(outbox_rows.take_over, [refused])
    clock.advance(timedelta(days=8))
    assert (await taken_up(run_of(store, clock, "2-ab")), await kept(store)) == ("", ["refused"])


async def killed_while_sending(store: Store, clock: FakeClock, line: str, behind: str) -> None:
    """Leave the rows of a run that was killed after a line had left the prompt."""
    killed = run_of(store, clock, "1-ab")
    killed.hold("frodo", line)
    killed.send("frodo", line, behind)
    await killed.written()


@pytest.mark.parametrize(
    ("line", "behind", "stored", "returned"),
    [
        ("on we go", "", "on we go", ""),
        ("on we go", "and on", "on we go", "and on"),
        ("on we go ", "and on", "on we go", "and on"),
        ("on\nwe go", "and on", "on\nwe go", "and on"),
        ("on we go", "", "", "on we go"),
        ("on we go", "and on", "hello", "on we go\nand on"),
        ("on we go", "", "on we", "on we go"),
        ("//usr is a folder", "and on", "/usr is a folder", "and on"),
        ("!!wow", "", "!wow", ""),
        ("mail \\@home", "", "mail @home", ""),
    ],
)
async def test_a_line_that_was_stored_does_not_come_back(
    store: Store, clock: FakeClock, line: str, behind: str, stored: str, returned: str
) -> None:
    await killed_while_sending(store, clock, line, behind)
    unsent = run_of(store, clock, "2-ab")
    assert await taken_up(unsent, stored=stored) == returned
    assert await kept(store) == [returned] * bool(returned)
    again = run_of(store, clock, "3-ab")
    assert await taken_up(again, stored=stored) == returned


@pytest.mark.parametrize("text", ["", "on we go"])
async def test_a_line_at_the_prompt_comes_back_even_if_the_last_message_was_the_same(
    store: Store, clock: FakeClock, text: str
) -> None:
    killed = run_of(store, clock, "1-ab")
    killed.send("frodo", "on we go", "")
    killed.text = text
    killed.release()
    killed.hold("frodo", "on we go")
    await killed.written()
    unsent = run_of(store, clock, "2-ab")
    assert await taken_up(unsent, stored="on we go") == "on we go"


async def test_a_text_that_comes_back_leaves_no_row_of_another(store: Store, clock: FakeClock) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    unsent = run_of(store, clock, "2-ab")
    await unsent.take_up("frodo")
    await holds(unsent, "frodo", "typed and deleted")
    unsent.bring_back("frodo")
    await unsent.written()
    assert await kept(store) == ["on we go"]


@pytest.mark.parametrize(
    ("other", "told"), [(Path("/other"), "What you had typed is kept in /other"), (None, "could not be kept: on we go")]
)
async def test_input_that_no_row_holds_is_in_a_file_or_in_the_sentence(
    store: Store, clock: FakeClock, other: Path | None, told: str
) -> None:
    records: list[Mapping[str, str]] = []

    def rescue(record: Mapping[str, str]) -> Path | None:
        records.append(record)
        return other

    await refuse(store)
    unsent = UnsentInput(store, "1-ab", clock, lambda _run: False, rescue)
    assert await unsent.keep("frodo", " \n") == ""
    assert (await unsent.keep("frodo", "on we go")).endswith(told)
    assert [(record["persona"], record["content"]) for record in records] == [("frodo", "on we go")]


async def test_where_nothing_can_be_written_what_was_left_is_at_the_prompt_all_the_same(
    store: Store, clock: FakeClock
) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    await refuse(store)
    assert await taken_up(run_of(store, clock, "2-ab")) == "on we go"
    assert await kept(store) == ["on we go"]


async def test_a_text_that_is_taken_over_twice_is_there_once(store: Store, clock: FakeClock) -> None:
    left = Left(Unsaid("frodo", "on we go"), clock.now(), f"{NO_RUN}a-file")
    other = left._replace(text=Unsaid("sam", "on we go"))
    for _ in range(2):
        await store.write(outbox_rows.take_over, [left, other])
    there, also = await store.read(outbox_rows.left_by_ended, lambda _run: True)
    assert (there, also) == (left._replace(id=there.id), other._replace(id=also.id))


async def test_a_table_that_cannot_be_read_does_not_prevent_the_chat(store: Store, typing: UnsentInput) -> None:
    await store.write(lambda connection: connection.execute("DROP TABLE outbox") and None)
    assert await taken_up(typing) == ""


async def test_a_log_that_can_only_be_read_gives_back_what_was_left_and_does_not_pretend_to_keep(
    store: Store, path: Path, clock: FakeClock
) -> None:
    await holds(run_of(store, clock, "1-ab"), "frodo", "on we go")
    sealed = Store(Sqlite(path, is_read_only=True))
    await sealed.open()
    await sealed.seal()
    unsent = run_of(sealed, clock, "2-ab")
    assert await taken_up(unsent) == "on we go"
    assert (await unsent.keep("frodo", "and on")).endswith("What you had typed could not be kept: and on")
    await sealed.close()


@pytest.mark.parametrize("behind", ["and more", "/etc too", "one\n/two"])
@pytest.mark.parametrize("message", ["/etc/hosts is long", "!wow", "// a comment\nx = 1", "hello"])
def test_a_message_and_the_input_behind_it_are_sent_as_they_were_said(message: str, behind: str) -> None:
    assert unescaped_line(joined(typed_line(message), typed_line(behind))) == f"{message}\n{behind}"
