"""The built-in tools, which a model may call."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from chorus_cli.context.rules.preamble import JOBS_HEADING
from chorus_cli.core.text.phrases import counted, cut_to_characters, shortened
from chorus_cli.core.time import timestamps
from chorus_cli.jobs.rules import ENDED_HEADING, elapsed, readable
from chorus_cli.log.rows import found_messages, message_rows, operation_rows, thread_lists, thread_rows
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.calls import called_name
from chorus_cli.log.rules.findings import passages
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.messages import Message, Role, Status, is_filled, is_of_server, words_of
from chorus_cli.log.rules.search_query import without_signs
from chorus_cli.log.rules.wording import told_by
from chorus_cli.memory.rules.items import Item, ItemType, Source, checked_type
from chorus_cli.memory.rules.recall import kept_line, lines_with_tiers, sent_items, written
from chorus_cli.memory.service.memory import Author
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.declaration import Kind, Parameter, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from chorus_cli.jobs.service import Jobs
    from chorus_cli.log.rules.attachments import Attachment
    from chorus_cli.log.rules.findings import Passage
    from chorus_cli.log.rules.speakers import Speakers
    from chorus_cli.machine.ports import Clock
    from chorus_cli.memory.service.memory import Memory
    from chorus_cli.models.rules.declaration import Arguments
    from chorus_cli.personas.rules.persona import Persona
    from chorus_cli.recall.service import Search
    from chorus_cli.storage.store import Store

MOST_FOUND = 20
MOST_SEARCHED = 3 * MOST_FOUND
"""A search finds more messages than the model gets: those of this turn and undone ones are left out."""

_MOST_READ = 500
_MOST_READ_CHARACTERS = 18_000
_MOST_AROUND = 15
_MOST_FOUND_CHARACTERS, _MOST_BESIDE_CHARACTERS = 800, 200
_PATIENCE_SECONDS = 3.0
"""How long a search waits for the index."""

_MOST_CHARACTERS_OF_ONE = 3
"""A character of an item becomes at most three in a result: two blanks indent each line, even an empty one."""
_Piece = TypeVar("_Piece")
_Handler = TypeVar("_Handler", bound="Callable[..., Awaitable[object]]")
_Handler_co = TypeVar("_Handler_co", bound="Callable[..., Awaitable[object]]", covariant=True)
_SPOKEN = (Role.USER, Role.ASSISTANT)
_TYPES = tuple(sorted({each.shown for each in ItemType}))


class ToolServices(NamedTuple):
    """The services that the functions of tools may use."""

    store: Store
    clock: Clock
    search: Search
    memory: Memory
    jobs: Jobs


class Caller(NamedTuple):
    """The persona whose model calls a tool, the turn of the call, and the model."""

    persona: Persona
    turn_id: int
    model: str

    @property
    def unheard(self) -> str:
        """ELIZA, because other models must not see and copy its words; empty if ELIZA is the caller itself."""
        return "" if self.model == ELIZA else ELIZA

    @property
    def telling(self) -> Telling:
        """How messages are written for the model."""
        return Telling(lambda _slug, number: f"#{number}", lambda _slug: self.persona.speakers, self.turn_id)


class Telling(NamedTuple):
    """How messages are written: the names of threads and of speakers, by persona, and the turn that is left out."""

    thread: Callable[[str, int], str]
    speakers: Callable[[str], Speakers]
    turn_id: int = 0


class Answer(NamedTuple):
    """The result of a call: a text for the model, a few words for the user, and whether the call changed something.

    A call that ``was_refused`` was not carried out. The bytes of ``attachments`` are stored already.
    """

    text: str
    outcome: str
    has_changed: bool = False
    was_refused: bool = False
    attachments: tuple[Attachment, ...] = ()


Handler: TypeAlias = "Callable[[ToolServices, Caller, Arguments], Awaitable[Answer]]"


class Handled(NamedTuple, Generic[_Handler_co]):
    """A tool with the function that carries out its calls."""

    tool: Tool
    handler: _Handler_co


BuiltIn: TypeAlias = Handled[Handler]


def built_in(description: str, *parameters: Parameter) -> Callable[[_Handler], Handled[_Handler]]:
    """Declare the decorated function as a tool; the description is for the model."""
    return lambda handler: Handled(Tool(handler.__name__, description, parameters), handler)


@built_in(
    "Search everything that you and the user ever said to each other, in all threads, also what is no longer in this "
    "conversation. Returns the best messages, each with those before and after it, its number, thread and date.",
    Parameter("query", "What you want to know, as a question in plain words with the names and things in it. Rare "
              "words count most. A phrase in double quotes or a +word must occur."),
    Parameter("since", "How far back to look, such as 7d, 3 months or last monday; without it, everything.",
              is_required=False),
    Parameter("until", "The latest time to look at, such as 2d or 2026-01-31; without it, now.", is_required=False),
)  # fmt: skip
async def search_history(services: ToolServices, caller: Caller, arguments: Arguments) -> Answer:
    """Find messages that match a question."""
    after = await services.store.read(operation_rows.beginning, caller.persona.slug)
    scope = Scope(None, caller.persona.slug, MOST_SEARCHED, after, without_model=caller.unheard)
    return await searched(services.search, arguments, scope, caller.telling)


async def searched(search: Search, arguments: Arguments, scope: Scope, telling: Telling) -> Answer:
    """Find messages by the arguments of `search_history`, within a ``scope`` that has no times yet."""
    scope = scope._replace(roles=_SPOKEN)
    now, asked = search.clock.now(), (arguments.text("since"), arguments.text("until"))
    if any(map(str.strip, asked)):
        from chorus_cli.core.time import timespan  # noqa: PLC0415 - no turn waits for it unless it asks for a time

        since = timespan.parse(asked[0], now, after_since=True).before(now) if asked[0].strip() else None
        until = timespan.until(asked[1], now) if asked[1].strip() else None
        timespan.refuse_empty(since, until)
        scope = scope._replace(since=since, until=until)
    news: list[str] = []
    findings = await search.find(without_signs(arguments.text("query")), scope, news.append, _PATIENCE_SECONDS)
    matches = [
        match
        for match in findings.matches
        if _is_said(match.message) and not match.taken_back and match.message.turn_id != telling.turn_id
    ]
    if not matches:
        nothing = "No message has any of these words. Try other words for what you look for."
        return Answer("\n".join([nothing, *news[-1:]]), "nothing")
    found = passages(matches[:MOST_FOUND])
    told = [_passage(each, telling) for each in found]
    whole = fitting(told, len) or [cut_to_characters(text, _MOST_READ_CHARACTERS) for text in told[:1]]
    number = sum(len(passage.excerpts) for passage in found[: len(whole)])
    if number < len(matches) or findings.more:
        whole.append("Worse results are left out. read_thread shows more around a message.")
    return Answer("\n".join([*whole, *news[-1:]]), counted(number, "message"))


def _passage(passage: Passage, telling: Telling) -> str:
    """Write messages of earlier turns, with a mark before each message that was found."""
    rows = [row for _, row in sorted(passage.messages.items()) if row.turn_id != telling.turn_id]
    names = telling.speakers(rows[0].persona)
    lines = [f"Thread {telling.thread(rows[0].persona, passage.thread_number)}, {_stamp(rows[0])}:"]
    for row in rows:
        is_found = row.id in passage.excerpts
        words = words_of(row) if is_found else shortened(words_of(row), _MOST_BESIDE_CHARACTERS)
        words = passage.excerpts[row.id] if is_found and len(words) > _MOST_FOUND_CHARACTERS else words
        lines.append(f"{'>' if is_found else ' '} #{row.id} {told_by(row.role, names)}: {words}")
    return "\n".join(lines)


@built_in(
    "Read another thread (conversation) of yours with the user: its newest messages, or those around one, as far as "
    "they fit. search_history tells the numbers of threads and messages.",
    Parameter("id", "The number of the thread.", Kind.NUMBER),
    Parameter("around", "The number of a message, such as #12, to read what was said before and after it.", Kind.NUMBER,
              is_required=False),
)  # fmt: skip
async def read_thread(services: ToolServices, caller: Caller, arguments: Arguments) -> Answer:
    """Read the newest part of a thread, or the part around a message."""
    given, slug = (arguments.number("id"), arguments.number("around")), caller.persona.slug
    return await read(services.store, slug, *given, caller.telling, caller.unheard)


async def read(store: Store, slug: str, number: int, center: int, telling: Telling, unheard: str = "") -> Answer:
    """Read the newest part of a persona's thread, or the part around the message ``center`` if it is not 0.

    Messages of the model ``unheard``, and questions that only it answered, are left out.
    """
    after = await store.read(operation_rows.beginning, slug)
    thread_id, _ = await store.read(thread_rows.had, slug, number, after)
    where = telling.thread(slug, number)
    if center:
        before, following = (await store.read(found_messages.beside, [center], _MOST_AROUND)).get(center, ([], []))
        ids = [*before, center, *following]
    else:
        ids = await store.read(thread_lists.newest_ids, thread_id, after, _MOST_READ)
    there = await store.read(message_rows.rows, ids)
    rows = [row for row in there if row.id > after and (row.persona, row.thread_id) == (slug, thread_id)]
    marks = log_marks(await store.read(operation_rows.all_of, slug, thread_id), thread_id)
    heard = await store.read(found_messages.without_turns_of, [row.id for row in rows], unheard)
    names = telling.speakers(slug)
    told = {
        row.id: f"[#{row.id}, {_stamp(row)}] {told_by(row.role, names)}: {words_of(row)}"
        for row in rows
        if _is_said(row) and row.id in heard and not marks.is_out(row) and row.turn_id != telling.turn_id
    }
    if not told:
        around = f"around message #{center} " if center else ""
        return Answer(f"Nothing was said {around}in thread {where}.", "nothing")
    nearest = sorted(told, key=lambda id_: abs(id_ - center) if center else -id_)
    shown = sorted(fitting(nearest, lambda id_: len(told[id_])) or nearest[:1])
    amount = counted(len(shown), "message")
    which = f"around #{center}, {amount}" if center else f"the newest {amount}"
    return Answer("\n\n".join([f"Thread {where}, {which}:", *(told[id_] for id_ in shown)]), amount)


@built_in(
    "Look into your memory, where facts, tasks, code, errors and test results are kept beyond this conversation, "
    "however old. Returns the items that match best, the best first, with the tier of each: HOT items are in every "
    "request, WARM ones in some, COLD and ARCHIVED ones only here.",
    Parameter("query", "What you want to know, as a question in plain words, or the number of an item, such as #12."),
)
async def recall_memory(services: ToolServices, caller: Caller, arguments: Arguments) -> Answer:
    """Find memory items of any tier by their words or numbers."""
    slug = caller.persona.slug
    items = await services.memory.recall(slug, arguments.text("query"))
    if not items:
        return Answer("No item of your memory has any of these words.", "nothing")
    told = _whole_items(sent_items(caller.persona, items), caller.persona)
    await services.memory.count_access(slug, [item.id for item in told])
    parts = [lines_with_tiers(told, caller.persona)]
    if more := len(items) - len(told):
        parts.append(f"Left out: {counted(more, 'item')} with these words; other words, or a number, find them.")
    return Answer("\n\n".join(parts), counted(len(told), "item"))


@built_in(
    "Keep something in your memory beyond this conversation: a fact about the user, a decision, a task. Only what "
    "will still matter later, in one or two sentences that can be understood alone.",
    Parameter("type", "task for facts, wishes and things to do, else what the content is.", choices=_TYPES),
    Parameter("content", "The text to keep."),
    Parameter("replaces", "The number of the item that is no longer true because of this text, such as 12.",
              Kind.NUMBER, is_required=False),
)  # fmt: skip
async def remember(services: ToolServices, caller: Caller, arguments: Arguments) -> Answer:
    """Add a memory item, or replace another with it; refuse a forgotten item, which only the user can bring back."""
    item_type, content = checked_type(arguments.text("type")), arguments.text("content")
    slug, author = caller.persona.slug, Author(await source_in_turn(services.store, caller.turn_id), caller.turn_id)
    # Some models send 0 for a number that they leave out.
    if old_id := int(arguments.values.get("replaces", 0)):
        number = (await services.memory.replace(slug, old_id, content, item_type, author)).id
        return Answer(kept_line(number, replaced_id=old_id), f"#{number}; /undo reopens #{old_id}", has_changed=True)
    kept = await services.memory.remember(slug, item_type, content, author)
    number, near = kept.items[0].id, kept.items[0].may_replace
    outcome = f"#{number}; /memory forget {number} removes it" if kept.new else f"known as #{number}"
    if kept.new and near:
        outcome = f"#{number}, nearly the same as #{near}: see /memory inbox"
    return Answer(kept_line(number, was_known=not kept.new), outcome, has_changed=True)


async def source_in_turn(store: Store, turn_id: int) -> Source:
    """Return the source of a model's words in a turn: a tool or a file if the turn has text of one, else the model."""
    question, *others = await store.read(message_rows.of_turn, turn_id)
    calls = (row.tool_calls or "" for row in others if row.role is Role.TOOL_USE)
    has_output = any(heading in question.preamble for heading in (ENDED_HEADING, JOBS_HEADING))
    has_words = is_of_server(question.content) or any(each.server for each in question.attachments)
    if has_output or has_words or any(called_name(call) not in _OWN_WORDS for call in calls):
        return Source.TOOL
    return Source.FILE if question.attachments else Source.MODEL


@built_in(
    "Read the output of a job: a shell command that the user ran here, numbered as in #1. "
    "You are told the last lines of each job once; this returns the whole output, or both ends of a long output.",
    Parameter("id", "The number of the job.", Kind.NUMBER),
)
async def job_output(services: ToolServices, caller: Caller, arguments: Arguments) -> Answer:
    """Read the output of a job."""
    job = services.jobs.find(arguments.number("id"), caller.persona.slug)
    output = cut_to_characters(readable(job.output.text()), _MOST_READ_CHARACTERS)
    heading = f"Job #{job.number} ({job.command}), {job.state}, {elapsed(job.seconds)}:"
    return Answer(f"{heading}\n{output or '(no output)'}", counted(job.output.line_count, "line"))


_OWN_WORDS = frozenset({"search_history", "read_thread", "recall_memory", "remember"})
"""The tools whose results have only words of the user, the model and the memory."""

BUILT_IN: tuple[BuiltIn, ...] = (search_history, read_thread, recall_memory, remember, job_output)


def _is_said(row: Message) -> bool:
    return row.role in _SPOKEN and is_filled(row) and row.status is not Status.STREAMING


def _stamp(row: Message) -> str:
    return f"{timestamps.local(row.timestamp):%Y-%m-%d %H:%M}"


def fitting(pieces: Iterable[_Piece], length: Callable[[_Piece], int]) -> list[_Piece]:
    """Return as many of the first pieces as fit into a result; ``length`` returns the characters of a piece."""
    listed = [*pieces]
    ends = accumulate(map(length, listed))
    return [piece for piece, end in zip(listed, ends, strict=True) if end <= _MOST_READ_CHARACTERS]


def _whole_items(items: Sequence[Item], persona: Persona) -> list[Item]:
    """Return the first items that fit into a result; if the first item alone does not fit, cut it in the middle.

    The result as a whole is not cut, so that an item that is forgotten later can be found in it and taken out.
    """
    told = fitting(items, lambda item: len(written(item, persona)) + 1)
    longest = _MOST_READ_CHARACTERS // _MOST_CHARACTERS_OF_ONE
    return told or [item._replace(content=cut_to_characters(item.content, longest)) for item in items[:1]]
