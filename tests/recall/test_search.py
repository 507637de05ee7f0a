"""Searching the log: the index is brought up to date first, and made again if it is damaged."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from chorus_cli.core.errors import DatabaseDamagedError
from chorus_cli.log.rows import found_messages, message_rows, operation_rows, search_index
from chorus_cli.log.rows.found_messages import COUNTED, Scope
from chorus_cli.log.rows.search_index import BATCH_ROWS
from chorus_cli.log.rules.acts import Edit
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.log.rules.wording import local
from chorus_cli.machine.ports import Clock
from chorus_cli.meaning.service import Meaning
from chorus_cli.memory.rules.recall import RECALLED_HEADING
from chorus_cli.recall.service import Search
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from tests.fakes import START, FakeClock
from tests.imports.service.foreign_talk import ROME, WHERE, taken_in
from tests.log.rows.test_search_index import index_all, put
from tests.log.service.thinking_talk import parts_of, think
from tests.storage.database import database, of_sqlite, opened, quick
from tests.world import World

TOLD = ["The index of the search was damaged. Chorus rebuilds it from the log; no message is damaged."]
EVERYWHERE = Scope(None, None, 10)


def wordy(store: Store, clock: Clock) -> Search:
    """Return a search without a model for the meaning."""
    return Search(store, clock, Meaning(store, clock, None))


def nothing(text: str) -> None:
    raise AssertionError(text)


def put_many(connection: Connection, contents: Iterable[str]) -> None:
    put(connection, *contents)


async def found(search: Search, typed: str, tell: Callable[[str], None] | None = None) -> list[int]:
    findings = await search.find(typed, EVERYWHERE, tell or nothing)
    return [match.message.id for match in findings.matches]


class SlowClock(FakeClock):
    """A clock on which a second and a half goes by between two looks."""

    def monotonic(self) -> float:
        self._monotonic += 1.5
        return self._monotonic


async def test_what_was_just_said_is_found_and_a_row_put_in_by_plain_sql_too(world: World) -> None:
    world.model.say("Three rings for the elves.")
    await world.say("Tell me of the ring")
    await world.store.write(put_many, ["a ring by hand"])
    assert await found(world.search, "ring") == [3, 2, 1]
    assert await found(world.search, "rings elves") == [2, 1, 3]
    assert await found(world.search, "+rings +elves") == [2]


async def test_results_of_the_memory_take_no_place_of_a_message(world: World) -> None:
    def recall(connection: Connection) -> None:
        result = MessageContent(1, Role.TOOL_RESULT, f"{RECALLED_HEADING}\n#1 (2026-02-12): a ring", START, 1)
        for _ in range(12):
            message_rows.insert_row(connection, "chorus", result)

    await world.say("A ring of gold")
    await world.store.write(recall)
    findings = await world.search.find("ring", EVERYWHERE, nothing)
    assert ([match.message.id for match in findings.matches], findings.more) == ([1], 0)


async def test_a_replaced_reply_is_found_and_marked(world: World) -> None:
    world.model.say("the first answer")
    await world.say("a question")
    world.model.say("the second answer")
    async for _ in world.conversation.retry(world.current.target()):
        pass
    findings = await world.search.find("answer", EVERYWHERE, nothing)
    assert [(match.message.content, bool(match.taken_back)) for match in findings.matches] == [
        ("the second answer", False),
        ("the first answer", True),
    ]


async def test_a_long_log_is_indexed_in_batches_and_how_far_it_is_told_after_a_second(store: Store) -> None:
    await store.write(put_many, ["row"] * (2 * BATCH_ROWS + 1))
    told: list[str] = []
    findings = await wordy(store, SlowClock()).find("row", EVERYWHERE, told.append)
    assert told == ["Indexing the log: 49% done.", "Indexing the log: 99% done."]
    assert (findings.more, findings.more_is_least) == (1000, True)


async def test_a_search_that_does_not_wait_for_the_whole_index_says_so_and_finds_what_is_in_it(store: Store) -> None:
    await store.write(put_many, ["row"] * (3 * BATCH_ROWS))
    told: list[str] = []
    findings = await wordy(store, SlowClock()).find("row", EVERYWHERE, told.append, 2.0)
    assert told == [
        "Indexing the log: 33% done.",
        "The newest messages may be missing, because the index is only 33% complete.",
    ]
    assert findings.matches[0].message.id == BATCH_ROWS


async def test_in_the_background_there_is_a_pause_after_each_batch_and_nothing_is_told(
    store: Store, clock: FakeClock
) -> None:
    await store.write(put_many, ["row"] * (BATCH_ROWS + 1))
    await wordy(store, clock).catch_up()
    assert len(clock.slept) == 2
    assert (await store.read(search_index.progress)).is_whole


async def test_the_index_is_kept_up_to_date_until_it_is_stopped(store: Store, clock: FakeClock) -> None:
    storage = asyncio.ensure_future(wordy(store, clock).keep_up())
    for number in range(3):
        await store.write(put_many, [f"row {number}"])
        for _ in range(5000):
            if (await store.read(search_index.progress)).is_whole:
                break
            await asyncio.sleep(0.001)
    assert (await store.read(search_index.progress)).through == 3
    storage.cancel()
    with suppress(asyncio.CancelledError):
        await storage


async def test_a_message_is_stored_and_answered_whatever_the_index_is_like(world: World) -> None:
    await world.store.write(lambda connection: connection.execute("DROP TABLE message_words"))
    assert (await world.say("Hello")).error is None
    assert await world.seen() == ["Hello", "ok"]


@of_sqlite("an index of FTS5")
async def test_an_index_that_cannot_be_made_anew_gets_a_sentence(world: World) -> None:
    await world.store.write(put_many, ["ring"])
    await found(world.search, "ring")
    await world.store.write(
        lambda connection: connection.execute(
            "CREATE TEMP TRIGGER vandal AFTER INSERT ON main.message_words_docsize BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    )
    await world.store.write(put_many, ["ring"])
    told: list[str] = []
    assert await found(world.search, "ring", told.append) == []
    assert "damaged" in told[0]


async def test_what_is_indexed_is_searched_also_while_another_program_writes(world: World) -> None:
    await world.store.write(put_many, ["an old ring"])
    await found(world.search, "ring")
    await world.store.write(put_many, ["a new ring"])
    engine = quick(world.folder / "chorus.db")
    engine.busy_timeout_seconds = 0.01
    impatient, other = Store(engine), Store(quick(world.folder / "chorus.db"))
    await impatient.open()
    await other.open()
    told: list[str] = []

    def hold(connection: Connection) -> list[int]:
        connection.execute("UPDATE messages SET model = model").fetchall()
        return asyncio.run_coroutine_threadsafe(found(wordy(impatient, world.clock), "ring", told.append), loop).result(
            10
        )

    loop = asyncio.get_running_loop()
    assert await other.write(hold) == [1]
    await impatient.close()
    await other.close()
    assert len(told) == 1
    assert "The newest messages may be missing" in told[0]


async def test_a_message_of_an_undone_edit_is_found_as_taken_back(talked: World) -> None:
    now, thread_id = talked.clock.now(), talked.current.thread_id
    put_in = (MessageContent(thread_id, Role.USER, "An unusual word", now),)
    await talked.store.write(operation_rows.introduce, NewOperation("chorus", Edit(), now, thread_id, members=put_in))
    for taken_back in (False, True):
        [match] = (await talked.search.find("unusual", EVERYWHERE, nothing)).matches
        assert bool(match.taken_back) is taken_back
        await talked.told("/context undo")


MESSAGES = 900


@pytest.fixture
def indexed(path: Path) -> Path:
    """The place of a log with a whole index."""
    with closing(database(str(path))) as connection:
        connection.execute("BEGIN")
        put(connection, *[f"row {number} of the ring, {number * number} steps" for number in range(MESSAGES)])
        index_all(connection, MESSAGES)
        connection.execute("COMMIT")
    return path


def damage(path: Path, table: str, block: bytes) -> None:
    """Write ``block`` over the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
        [(size,)] = connection.execute("PRAGMA page_size").fetchall()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write((block * size)[:size])


async def searched(path: Path, told: list[str], words: str = "ring") -> int:
    async with opened(path) as store:
        found = await wordy(store, FakeClock()).find(words, Scope(None, None, 10), told.append)
        return len(found.matches) + found.more


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
        return str(found)


@pytest.mark.parametrize("block", [b"\0", b"\x05\xa7\x13"], ids=["zeroes", "anything"])
@pytest.mark.parametrize("table", ["data", "idx", "config"])
async def test_an_index_whose_pages_cannot_be_read_is_made_again_and_the_file_is_sound(
    indexed: Path, table: str, block: bytes
) -> None:
    damage(indexed, f"message_words_{table}", block)
    told: list[str] = []
    assert await searched(indexed, told) == MESSAGES
    assert told == TOLD
    assert integrity(indexed) == "ok"
    assert await searched(indexed, told) == MESSAGES
    assert told == TOLD


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE message_words_data SET block = zeroblob(length(block)) WHERE id > 10",
        "DELETE FROM message_words_data WHERE id > 10",
        "DROP TABLE message_words",
    ],
)
async def test_an_index_that_has_lost_its_words_is_made_again_instead_of_finding_nothing(
    indexed: Path, statement: str
) -> None:
    with closing(sqlite3.connect(indexed, isolation_level=None)) as connection:
        connection.execute(statement)
    told: list[str] = []
    assert await searched(indexed, told, "row ring") == MESSAGES
    assert told == TOLD


async def test_what_is_in_no_message_is_not_found_in_a_sound_index_and_nothing_is_told(indexed: Path) -> None:
    told: list[str] = []
    assert await searched(indexed, told, "sword") == 0
    assert told == []


async def test_damage_of_the_log_is_told_as_such_and_nothing_is_written(indexed: Path) -> None:
    damage(indexed, "message_words_data", b"\0")
    damage(indexed, "messages", b"\0")
    before = await asyncio.to_thread(indexed.read_bytes)
    with pytest.raises(DatabaseDamagedError, match=r"chorus\.db is damaged"):
        await searched(indexed, [])
    assert await asyncio.to_thread(indexed.read_bytes) == before


WITH_THOUGHTS = Scope(None, None, 10, with_thoughts=True)


async def thoughtfully(world: World, words: str, scope: Scope = WITH_THOUGHTS) -> list[tuple[int, bool]]:
    """Return the id of each message found, and whether it was found by the thought before it."""
    findings = await world.search.find(words, scope, nothing)
    return [(match.message.id, match.is_thought) for match in findings.matches]


@pytest.fixture
async def thoughtful(world: World) -> World:
    """Two turns: in the first, question, thought and reply have the word, in the second one the thought alone."""
    think(world, "A ring of gold, for Gandalf.", "The ring.", parts=parts_of("A secret ring"))
    await world.say("Which ring?")
    think(world, "Not the Ring → but 金 Sauron?", "Nothing.")
    await world.say("What else?")
    return world


async def test_a_thought_is_found_on_request_only_and_beside_its_reply(thoughtful: World) -> None:
    assert await thoughtfully(thoughtful, "ring") == [(2, False), (4, True), (1, False), (2, True)]
    assert await thoughtfully(thoughtful, "ring", Scope(None, None, 10)) == [(2, False), (1, False)]
    for words in ("gandalf", "sauron", "金"):
        assert await thoughtfully(thoughtful, words, Scope(None, None, 10)) == []


@pytest.mark.parametrize(
    ("words", "ids"),
    [("+gold +ring", [2]), ("sauron gandalf", [4, 2]), ('"but 金"', [4]), ("gand*", [2]), ("→", [4]),
     ('"→" sauron', [4]), ('"→" gold', []), ("金", [4]), ("+which +gold", []), ("secret", []),
     ("sauron gandalf -金", [2]), ('sauron gandalf -"→"', [2])],
)  # fmt: skip
async def test_the_terms_are_looked_for_in_the_readable_thought(thoughtful: World, words: str, ids: list[int]) -> None:
    assert await thoughtfully(thoughtful, words) == [(id_, True) for id_ in ids]


async def test_the_result_says_that_it_is_a_thought(thoughtful: World) -> None:
    when = local(thoughtful.clock.now())
    assert await thoughtful.told("/search gandalf --thoughts") == (
        f"#2  {when}  chorus, thread #1  [thought]\n"
        "  Human: Which ring?\nchorus: A ring of gold, for «Gandalf».\n  Human: What else?"
    )
    findings = await thoughtful.search.find("gandalf", WITH_THOUGHTS, nothing)
    assert [match.as_json()["in_thoughts"] for match in findings.matches] == [True]


async def test_the_limits_of_a_search_hold_for_thoughts(thoughtful: World) -> None:
    for limits, expected in (
        (Scope(None, None, 10, 2), [(4, True)]),
        (Scope(None, "frodo", 10), []),
        (Scope(thoughtful.clock.now(), None, 10), []),
        (Scope(None, None, 2), [(2, False), (4, True)]),
    ):
        assert await thoughtfully(thoughtful, "ring", limits._replace(with_thoughts=True)) == expected
    assert await thoughtfully(thoughtful, "gandalf role:user") == []
    findings = await thoughtful.search.find("ring", Scope(None, None, 2, with_thoughts=True), nothing)
    assert (findings.more, findings.more_is_least) == (2, False)


async def test_a_thought_of_an_undone_import_or_a_purged_message_is_not_found(thoughtful: World) -> None:
    await taken_in(thoughtful, ROME, {**WHERE, "reasoning": "Over the Alps."})
    assert await thoughtfully(thoughtful, "alps") == [(5, True)]
    await thoughtful.told("/context undo")
    assert await thoughtfully(thoughtful, "alps") == []
    await (await thoughtful.asked_back("/purge message 4")).confirmed()
    assert await thoughtfully(thoughtful, "sauron") == []


async def test_many_thoughts_are_read_page_by_page_and_counted_no_further_than_needed(thoughtful: World) -> None:
    def put(connection: Connection) -> None:
        long = f"a wizard {'word ' * 25_000}"
        for number in range(COUNTED + 30):
            text = long if number < 20 else "a wizard"
            content = MessageContent(1, Role.ASSISTANT, "Hm.", START, 1, reasoning=text)
            message_rows.insert_row(connection, "chorus", content)

    await thoughtful.store.write(put)
    texts, before = await thoughtful.store.read(found_messages.page_of_thoughts, WITH_THOUGHTS, 24)
    assert len(texts) == 8
    assert before == min(texts)
    findings = await thoughtful.search.find("wizard", WITH_THOUGHTS, nothing)
    assert [match.message.id for match in findings.matches] == list(range(COUNTED + 34, COUNTED + 24, -1))
    assert (findings.more, findings.more_is_least) == (COUNTED, True)
