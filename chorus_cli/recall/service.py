"""Searches messages and titles, updates the search index, and recalls memory items and earlier turns for a question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import TypeVar

from chorus_cli.context.rules import earlier, memory
from chorus_cli.context.rules.earlier import EarlierTurn
from chorus_cli.context.rules.memory import MOST_HOT, MOST_RECALLED
from chorus_cli.context.rules.plan import system_tokens
from chorus_cli.context.rules.view import ContextSnapshot, without_eliza
from chorus_cli.context.service.transcript import numbers_of
from chorus_cli.core.errors import StorageError
from chorus_cli.log.rows import found_messages, message_rows, operation_rows, search_index, thread_lists
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rows.search_index import Progress
from chorus_cli.log.rows.word_index import mending
from chorus_cli.log.rows.words import IndexDamagedError
from chorus_cli.log.rules.findings import Findings, Match
from chorus_cli.log.rules.journal import LogMarks, log_marks
from chorus_cli.log.rules.messages import Message, MessageContent, Role
from chorus_cli.log.rules.search_query import SearchQuery, Term, search_query
from chorus_cli.machine.ports import Clock
from chorus_cli.meaning.service import Meaning
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.items import Item
from chorus_cli.memory.rules.recall import (
    RECALLED_HEADING,
    best_within,
    called_by,
    keys_of,
    references,
    sent_items,
    tokens_in_request,
)
from chorus_cli.settings.rules.table import NO_RECALL
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store

T = TypeVar("T")

_BREATH_SECONDS = 0.05
_LOOK_SECONDS = 20.0
_SILENCE_SECONDS = 1.0
_MOST_BESIDE = 4  # messages that are read on each side of a match, because the nearest may have been undone
_RENEWED = "The index of the search was damaged. Chorus rebuilds it from the log; no message is damaged."
_LOST = (
    "The index of the search is damaged, and Chorus could not rebuild it; run chorus doctor. "
    "The messages are not damaged; chorus log prints them."
)


@dataclass(slots=True)
class Search:
    """The search in all messages of the log."""

    store: Store
    clock: Clock
    meaning: Meaning
    _is_checked: bool = False

    async def find(
        self, text: str, scope: Scope, tell: Callable[[str], None], patience_seconds: float | None = None
    ) -> Findings:
        """Update the index, and return the messages, thoughts and titles that the search ``text`` finds, best first.

        If the update takes over a second, ``tell`` gets reports of its progress. If it takes longer than
        ``patience_seconds``, or fails, ``tell`` gets a warning, and only the messages in the index are searched.
        """
        query, scope = search_query(text), scope._replace(without_results=RECALLED_HEADING)
        found = await self._found(query, scope, tell, patience_seconds)
        threads = await self.store.read(thread_lists.titled, query, scope)
        more = min(found.more, found_messages.COUNTED)
        matches = await self._judged(found.matches, scope.without_model)
        return Findings(
            matches,
            more,
            more_is_least=found.more > more,
            threads=tuple(threads[: scope.limit]),
            more_threads=max(0, len(threads) - scope.limit),
        )

    async def catch_up(
        self, tell: Callable[[str], None] | None = None, patience_seconds: float | None = None
    ) -> Progress:
        """Update the index in batches, for at most ``patience_seconds``, and return its progress.

        ``tell`` gets reports of the progress. Without ``tell``, there is a pause after each batch.
        """
        begun = told = self.clock.monotonic()
        reached = await self.store.read(search_index.progress)
        while not reached.is_whole:
            if patience_seconds is not None and self.clock.monotonic() - begun >= patience_seconds:
                break
            reached = await self._mending(lambda: self.store.write(search_index.index_batch), tell)
            if tell is None:
                await self.clock.sleep(_BREATH_SECONDS)
            elif self.clock.monotonic() - told >= _SILENCE_SECONDS and not reached.is_whole:
                told = self.clock.monotonic()
                tell(f"Indexing the log: {reached.percent}% done.")
        return reached

    async def keep_up(self) -> None:
        """Update the index every 20 seconds until the task is cancelled, even if an update fails."""
        while True:
            # The next search updates the index and reports the error.
            with suppress(StorageError):
                await self.catch_up()
            await self.clock.sleep(_LOOK_SECONDS)

    async def _found(
        self, query: SearchQuery, scope: Scope, tell: Callable[[str], None], patience_seconds: float | None
    ) -> Findings:
        said = await self._mending(lambda: self._said(query, scope, tell, patience_seconds), tell)
        if not scope.with_thoughts:
            return said
        thought = await self._thought(query, scope)
        pairs = zip_longest(said.matches, thought.matches)
        matches = [match for pair in pairs for match in pair if match is not None]
        return Findings(tuple(matches[: scope.limit]), said.more + thought.more + max(0, len(matches) - scope.limit))

    async def _thought(self, query: SearchQuery, scope: Scope) -> Findings:
        """Search the thoughts of models, a page at a time, so that other tasks can use the store in between."""
        excerpts: dict[int, str] = {}
        before = await self.store.read(message_rows.newest_id) + 1
        while before and len(excerpts) <= scope.limit + found_messages.COUNTED:
            texts, before = await self.store.read(found_messages.page_of_thoughts, scope, before, query.roles)
            excerpts |= await asyncio.to_thread(found_messages.found_in, texts, query)
        rows = await self.store.read(message_rows.rows, sorted(excerpts)[-scope.limit :])
        matches = tuple(Match(row, excerpts[row.id], is_thought=True) for row in reversed(rows))
        return Findings(matches, max(0, len(excerpts) - scope.limit))

    async def _said(
        self, query: SearchQuery, scope: Scope, tell: Callable[[str], None], patience_seconds: float | None
    ) -> Findings:
        try:
            reached = await self.catch_up(tell, patience_seconds)
            if not reached.is_whole and patience_seconds:
                tell(f"The newest messages may be missing, because the index is only {reached.percent}% complete.")
        except StorageError as error:
            tell(f"The newest messages may be missing, because the index cannot be brought up to date. {error}")
        near = await self.meaning.nearest(query, scope)
        found = await self.store.read(found_messages.find, query, scope, near)
        if query.terms and not found.matches:
            await self._check()
        return found

    async def _check(self) -> None:
        """Check the index after an empty result, once in each process: the index may have lost its content."""
        if not self._is_checked:
            # The check fails while another program writes; the next empty result repeats it.
            with suppress(StorageError):
                await self.store.write(search_index.check)
                self._is_checked = True

    async def _mending(self, work: Callable[[], Awaitable[T]], tell: Callable[[str], None] | None) -> T:
        return await mending(work, self.store, search_index.begin_in_new_pages, tell, (_RENEWED, _LOST))

    async def _judged(self, matches: Sequence[Match], without_model: str) -> tuple[Match, ...]:
        """Add to each match its neighbours and whether it is undone or replaced. Leave out results of memory tools."""
        matches = [match for match in matches if not memory.repeats_items(match.message)]
        marks, sides, beside = await self.store.read(_around, [match.message for match in matches], without_model)
        numbers = {persona: await numbers_of(self.store, persona) for persona in {persona for persona, _ in marks}}

        def judged(match: Match) -> Match:
            row, known = match.message, marks[match.message.persona, match.message.thread_id]
            before, after = (
                next((beside[id_] for id_ in side if id_ in beside and not known.is_out(beside[id_])), None)
                for side in sides[row.id]
            )
            return match._replace(taken_back=known.words(row), numbers=numbers[row.persona], before=before, after=after)

        return tuple(map(judged, matches))


def _around(
    connection: Connection, messages: Sequence[Message], without_model: str
) -> tuple[dict[tuple[str, int], LogMarks], dict[int, tuple[list[int], list[int]]], dict[int, Message]]:
    """Return the marks of the threads, the ids of the neighbours of each message, and the neighbours by id."""
    threads = {(message.persona, message.thread_id) for message in messages}
    marks = {each: log_marks(operation_rows.all_of(connection, *each), each[1]) for each in threads}
    sides = found_messages.beside(connection, [message.id for message in messages], _MOST_BESIDE)
    near = sorted({id_ for pair in sides.values() for side in pair for id_ in side})
    heard = found_messages.without_turns_of(connection, near, without_model)
    return marks, sides, {row.id: row for row in message_rows.rows(connection, heard)}


MOST_CALLED = 20


def recalled(
    connection: Connection, snapshot: ContextSnapshot, question: MessageContent, other_tokens: int
) -> list[Item]:
    """Return the items for the preamble of a question, in order of id. Count an access to them and to the HOT items.

    Only items that the request lacks are chosen, as long as there is room. Items with keys in the question have
    priority, then items with keys in the message before it. Next are items that the question names by number, and items
    without keys that have rare words of the question. Last are items with an old wording in the request, and new HOT
    items. If ``recall`` is off, keys and words do not count. The preamble's other lines have ``other_tokens`` tokens.
    """
    persona, messages = snapshot.request_settings.target.persona.slug, _sent_messages(snapshot)
    taken_tokens = system_tokens(snapshot, snapshot.view.summary) + (question.token_count or 0) + other_tokens
    room = memory.recall_room(snapshot.budget, taken_tokens)
    chosen: dict[int, Item] = {}
    brings_by_words = snapshot.request_settings.target.persona.settings.recall != NO_RECALL
    keyed = item_rows.keyed(connection, persona) if brings_by_words else []
    called = called_by(question.content, keyed)
    called_before = called_by(messages[-1].content, keyed) if messages else []
    named = references(question.content)
    found = item_rows.referred_to(connection, persona, question.content, MOST_HOT, by_words=brings_by_words)
    referred = [item for item in found if item.id in named or keys_of(item.content) is None]
    old_wordings = {*memory.mentions(messages), *(item.id for item in snapshot.hot)}
    corrected = item_rows.of_ids(connection, persona, old_wordings)
    # Chosen as for the HOT block: an item without room in the block must not come with every question instead.
    hot = memory.chosen_hot(item_rows.hot(connection, persona, MOST_HOT), snapshot.budget, memory.contents(messages))
    by_keys = ((called, MOST_CALLED), (called_before, MOST_CALLED))
    for items, most in (*by_keys, (referred, MOST_RECALLED), (corrected, MOST_HOT), (hot, MOST_HOT)):
        left = room - sum(map(tokens_in_request, chosen.values()))
        as_sent = sent_items(snapshot.request_settings.target.persona, items)
        candidates = [item for item in memory.unsent(as_sent, snapshot.hot, messages) if item.id not in chosen]
        chosen |= {item.id: item for item in best_within(candidates, left, most)}
    loaded = {*chosen, *(item.id for item in snapshot.hot)}
    item_rows.count_access(connection, persona, loaded, question.timestamp)
    return [chosen[id_] for id_ in sorted(chosen)]


_MOST_CANDIDATES = 30


def earlier_turns(
    connection: Connection,
    snapshot: ContextSnapshot,
    question: MessageContent,
    other_tokens: int,
    count: Callable[[str], int],
    is_late: Callable[[], bool],
) -> list[EarlierTurn]:
    """Return the best turns from before the window that have rare words of a question, for the question's preamble.

    Turns in the view or in a preamble of the request are left out. So are turns before a boundary of their thread, and
    turns that were undone, replaced or answered by ELIZA. ``count`` counts tokens: all turns together take at most a
    twentieth of the budget. Once the search ``is_late``, no more turns are read. If the index is damaged, return none.
    """
    target = snapshot.request_settings.target
    persona, names = target.persona.slug, target.persona.speakers
    taken_tokens = system_tokens(snapshot, snapshot.view.summary) + (question.token_count or 0) + other_tokens
    room = memory.recall_room(snapshot.budget, taken_tokens)
    words = [Term(word) for word in earlier.words_that_bring(question.content)]
    most = earlier.most_with_a_word_that_brings(message_rows.newest_id(connection))
    # No thread has the id 0, so this is the newest boundary that applies to all threads.
    cleared = operation_rows.boundary(connection, persona, 0)
    after = cleared.after_message_id if cleared else 0
    scope = Scope(None, persona, _MOST_CANDIDATES, after, until=snapshot.view.cutoff)
    try:
        rare = found_messages.rare(connection, words, most, is_late)
        query = SearchQuery(words=tuple(rare), roles=(Role.USER, Role.ASSISTANT))
        best = found_messages.ranking(connection, query, scope).best if rare else ()
    except IndexDamagedError:
        return []
    repeated = {use.id for use in earlier.earlier_in(_sent_messages(snapshot))}
    known = {row.id for row in snapshot.view.messages} | repeated
    return earlier.fitting(_turns(connection, best, known, is_late), names, room, count)


def _turns(
    connection: Connection, found: Sequence[int], known: Collection[int], is_late: Callable[[], bool]
) -> Iterator[EarlierTurn]:
    """Yield the turns of ``found`` messages, each once, without messages that are ``known``, undone or replaced."""
    marks: dict[int, LogMarks] = {}
    after: dict[int, int] = {}
    given: set[int] = set()
    for id_ in takewhile(lambda _id: not is_late(), found):
        before, following = found_messages.beside(connection, [id_], _MOST_BESIDE).get(id_, ([], []))
        rows = message_rows.rows(connection, [*before, id_, *following])
        row = next((each for each in rows if each.id == id_), None)
        if row is None or row.turn_id in given:
            continue
        thread_id = row.thread_id
        if thread_id not in marks:
            marks[thread_id] = log_marks(operation_rows.all_of(connection, row.persona, thread_id), thread_id)
            boundary = operation_rows.boundary(connection, row.persona, thread_id)
            after[thread_id] = boundary.after_message_id if boundary else 0
        said = [
            each
            for each in rows
            if each.turn_id == row.turn_id
            and each.id > after[thread_id]
            and each.id not in known
            and not marks[thread_id].is_out(each)
        ]
        heard = tuple(without_eliza(said))
        if row in heard:
            given.add(row.turn_id)
            yield EarlierTurn(row, heard)


def _sent_messages(snapshot: ContextSnapshot) -> Sequence[Message]:
    """Return the messages of the next request: pinned ones, and all from the first message of the last request on."""
    view, first = snapshot.view, snapshot.first_message_id
    beginning = next((position for position, message in enumerate(view.verbatim) if message.id == first), 0)
    pinned = (message for message in view.verbatim[:beginning] if message.id in view.pinned)
    return (*pinned, *view.verbatim[beginning:])
