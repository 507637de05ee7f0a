"""The view of a thread: the messages in context now, the reasons why others are not, and the snapshot for a request.

The log is permanent. The view is computed from the log and the journal, by a boundary and four sets of messages:

    boundary  the newest effective clear, edit, restore or fork
    members   the messages that the boundary put into the context; none if the window begins after the boundary
    kept      the messages that later operations put into the context, whatever their age
    spoken    the messages since the boundary, also imported ones, that are inside the window
    out       the messages that a retry or a greeting replaced or an undo took back since the boundary, and the spoken
              messages that are not on the live branch of an imported conversation

The view has the members, as the boundary orders them, then the kept and spoken messages by turn, without those that are
out. Members and kept messages may be rows of another thread, because a fork takes over the context of its origin. A
timestamp decides only a message's age; a message from the future is as old as one from now.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from chorus_cli.core.text.phrases import counted
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Retry
from chorus_cli.log.rules.attachments import ALL_SENT, Kind
from chorus_cli.log.rules.log_acts import Import
from chorus_cli.log.rules.messages import (
    TOOL_ROLES,
    Message,
    MessageContent,
    Role,
    Runs,
    Status,
    expanded,
    is_filled,
    is_written,
)
from chorus_cli.models.rules.budget import LARGEST_FACTOR, TOKENS_PER_MESSAGE, Budget, Calibration, Limit, budget
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.models.rules.declaration import NO_OFFER, ToolOffer
from chorus_cli.models.rules.request import NO_ECHO, Echo

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.log.rules.journal import ThreadJournal
    from chorus_cli.log.rules.messages import Thoughts
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.personas.rules.persona import Document, Target

_Said = TypeVar("_Said", Message, MessageContent)


@dataclass(frozen=True)
class Summary:
    """A text in place of the messages ``stands_for``, in a view that begins at a boundary.

    ``number`` names the operation to the user. ``model`` wrote the content; ``None`` means that the user wrote it.
    """

    operation_id: int
    boundary_id: int | None
    stands_for: Runs
    content: str
    # The comparison ignores the count, which may be added later, and the number, which the operation's id implies.
    token_count: int | None = field(compare=False)
    model: str | None
    created_at: datetime
    number: int = field(default=0, compare=False)


def standing(
    summaries: Iterable[Summary], boundary_id: int | None, view_ids: Sequence[int], pinned: Collection[int] = ()
) -> tuple[Summary | None, int]:
    """Return the newest summary that holds for a view, and how many messages at the view's beginning it stands for.

    A summary holds if the view has its boundary and begins with its messages, uninterrupted. Its oldest messages may
    have left the window. Pinned messages are ignored, because they are sent anyway.
    """
    unpinned = [id_ for id_ in view_ids if id_ not in pinned] if pinned else view_ids
    positions = {id_: position for position, id_ in enumerate(unpinned)}
    for summary in sorted(summaries, key=lambda each: each.operation_id, reverse=True):
        ids = tuple(id_ for id_ in expanded(summary.stands_for) if id_ not in pinned)
        if summary.boundary_id != boundary_id or not ids or ids[-1] not in positions:
            continue
        number = positions[ids[-1]] + 1
        if tuple(unpinned[:number]) == ids[-number:]:
            return summary, number if unpinned is view_ids else view_ids.index(ids[-1]) + 1
    return None, 0


class Reason(StrEnum):
    """The reason why a message is not sent; ``reasons_outside`` finds the first three."""

    BOUNDARY = "before the context starts"
    AGE = "older than the window"
    TAKEN_BACK = "undone"
    REPLACED = "replaced by another reply or greeting"
    HIDDEN = "hidden in the program it came from"
    SUMMARISED = "summarised"
    ELIZA = "said with chorus/eliza"
    NO_ROOM = "no room in the request"
    RUNNING = "still being written"
    REPEATED = "not answered, and sent again"
    UNUSABLE = "blank, or a tool's call or result without the other"


@dataclass(frozen=True)
class View:
    """The messages in context in order, the boundary, the cutoff, and the messages that were taken back from the view.

    ``summary`` stands for the first ``folded_number`` messages. Operations since the boundary keep the messages
    ``kept`` in context at any age; of these, the ``pinned`` ones are sent word for word. ``taken_back`` includes the
    messages ``replaced`` by a retry, by a greeting or by another branch of an imported conversation. Some of these
    were ``hidden`` from the model in the program they came from. ``heard_by`` is the model that is asked.
    """

    messages: tuple[Message, ...]
    boundary: Operation | None
    cutoff: datetime
    taken_back: tuple[Message, ...] = ()
    summary: Summary | None = None
    folded_number: int = 0
    kept: frozenset[int] = frozenset()
    pinned: frozenset[int] = frozenset()
    replaced: frozenset[int] = frozenset()
    hidden: frozenset[int] = frozenset()
    heard_by: str = ELIZA

    @cached_property
    def withheld(self) -> frozenset[int]:
        """The ids of the messages that were exchanged with ELIZA; empty if ELIZA is asked."""
        heard = self.messages if self.heard_by == ELIZA else without_eliza(self.messages)
        gone = {row.id for row in self.messages} - {row.id for row in heard} if heard is not self.messages else ()
        return frozenset(gone)

    @cached_property
    def verbatim(self) -> tuple[Message, ...]:
        """The messages that are sent word for word: the pinned and the unfolded ones, without the ``withheld`` ones."""
        pinned = (row for row in self.folded if row.id in self.pinned)
        sent = (*pinned, *self.unfolded)
        return tuple(row for row in sent if row.id not in self.withheld) if self.withheld else sent

    @property
    def folded(self) -> tuple[Message, ...]:
        """The messages that the summary stands for."""
        return self.messages[: self.folded_number]

    @property
    def unfolded(self) -> tuple[Message, ...]:
        """The messages that the summary does not stand for."""
        return self.messages[self.folded_number :]

    @property
    def boundary_id(self) -> int | None:
        """The id of the boundary, ``None`` if there is none."""
        return self.boundary.id if self.boundary else None

    def with_summary(self, summary: Summary | None) -> View:
        """Return the view with another summary; unchanged if that is ``None`` or does not hold for the view."""
        summaries, ids = [summary] if summary else [], [row.id for row in self.messages]
        found, number = standing(summaries, self.boundary_id, ids, self.pinned)
        return replace(self, summary=found, folded_number=number) if found else self

    def through(self, number: int) -> View:
        """Return the view of the first ``number`` messages; a summary that stands for all of them is dropped."""
        if self.folded_number < number:
            return replace(self, messages=self.messages[:number])
        return replace(self, messages=self.messages[:number], summary=None, folded_number=0)


def view(
    messages: Iterable[Message], journal: ThreadJournal, since: datetime, summaries: Collection[Summary] = ()
) -> View:
    """Compute the view of a thread from rows of the log and the journal of the thread.

    ``messages`` must hold the rows that ``put_in`` names and the thread's rows after the boundary and after ``since``.
    It may hold other rows too, and its order does not matter.
    """
    thread_id, boundary, kept = journal.thread_id, journal.boundary, journal.kept
    rows = {row.id: row for row in messages if row.thread_id == thread_id or row.id in journal.brought}
    members = _entered(thread_id, boundary, rows) if boundary and boundary.created_at > since else []
    member_ids, spoken = {row.id for row in members}, _spoken(rows.values(), journal, members, since)
    others = (row for row in rows.values() if row.id not in member_ids and (row.id in kept or row.id in spoken))
    chosen = [*members, *sorted(others, key=lambda row: (row.turn_id, row.id))]
    elsewhere = {row.id for row in chosen if journal.moved_off.get(row.id, row.superseded)}
    # Messages that the user put into the context stay, whichever branch they are on.
    out = journal.replaced | (elsewhere - kept - member_ids)
    undone, withdrawn = journal.undone_turns, journal.withdrawn
    taken_back = tuple(
        row for row in chosen if row.id in out or row.turn_id in undone or row.introduced_by in withdrawn
    )
    gone = {row.id for row in taken_back}
    seen = tuple(row for row in chosen if row.id not in gone)
    begun, ids = boundary.id if boundary else None, [row.id for row in seen]
    summary, folded_number = standing(summaries, begun, ids, journal.pinned) if summaries else (None, 0)
    return View(
        messages=seen,
        boundary=boundary,
        cutoff=since,
        taken_back=taken_back,
        summary=summary,
        folded_number=folded_number,
        kept=kept,
        pinned=journal.pinned,
        replaced=frozenset(out & gone),
        hidden=journal.hidden & elsewhere & gone,
    )


def put_in(journal: ThreadJournal, since: datetime) -> set[int]:
    """Return the ids of the messages that operations put into the view: members of the boundary, and kept ones."""
    boundary = journal.boundary
    members = boundary.members_in(journal.thread_id) if boundary and boundary.created_at > since else ()
    return {*members, *journal.kept}


def reasons_outside(
    thread_id: int, rows: Iterable[Message], operations: Sequence[Operation], seen: View
) -> dict[int, Reason]:
    """Return by id why messages of a thread are outside its view; messages taken back from the view are left out.

    ``rows`` are all rows of the thread and those that effective operations brought in. A message and its rewordings
    have one entry, under the id of the first wording.
    """
    by_id = {row.id: row for row in rows}
    reached = _with_originals({row.id for row in (*seen.messages, *seen.taken_back)}, by_id)
    entered = _with_originals({row.id for row in _entered(thread_id, seen.boundary, by_id)}, by_id)
    entered_turns = {by_id[id_].turn_id for id_ in entered if id_ in by_id}
    subjects = (subject.operation_id for subject in journal.undone(operations))
    undone = {operation_id for operation_id in subjects if operation_id is not None}
    boundary_id = seen.boundary_id or 0
    after = seen.boundary.after_message_id if seen.boundary else 0

    def reason(row: Message) -> Reason:
        if row.id in entered:
            return Reason.AGE
        if row.thread_id != thread_id:
            return Reason.BOUNDARY
        introduced_by = row.introduced_by or boundary_id
        if row.id <= after or introduced_by < boundary_id:
            return Reason.BOUNDARY
        if row.turn_id <= after and row.turn_id not in entered_turns:
            return Reason.BOUNDARY
        is_undone = row.introduced_by in undone and row.timestamp > seen.cutoff
        return Reason.TAKEN_BACK if is_undone else Reason.AGE

    outside = (row for row in by_id.values() if row.id not in reached and is_written(row))
    return {row.id: reason(row) for row in outside if row.revises is None or row.revises not in by_id}


def _with_originals(ids: set[int], rows: dict[int, Message]) -> set[int]:
    """Return the ids, and the ids of all earlier wordings of their messages."""
    found = set(ids)
    unseen = list(ids)
    while unseen:
        row = rows.get(unseen.pop())
        if row is not None and row.revises is not None and row.revises not in found:
            found.add(row.revises)
            unseen.append(row.revises)
    return found


def _entered(thread_id: int, boundary: Operation | None, rows: Mapping[int, Message]) -> list[Message]:
    """Return the members of a boundary in a thread: rows of the thread, and rows that the boundary brought into it."""
    if boundary is None:
        return []
    brought = set(boundary.brought_into(thread_id))
    members = (rows[member] for member in boundary.members_in(thread_id) if member in rows)
    return [row for row in members if row.id in brought or row.thread_id == thread_id]


def _spoken(rows: Iterable[Message], journal: ThreadJournal, members: Iterable[Message], since: datetime) -> set[int]:
    """Return the ids of the rows that were said in the window, since the boundary."""
    thread_id, after = journal.thread_id, journal.boundary.after_message_id if journal.boundary else 0
    spoken_by = {each.id for each in journal.later if isinstance(each.act, Retry | Import)}
    member_turns = {row.turn_id for row in members}
    return {
        row.id
        for row in rows
        if row.id > after
        and row.thread_id == thread_id
        and row.timestamp > since
        and (row.introduced_by is None or row.introduced_by in spoken_by)
        and (row.turn_id > after or row.turn_id in member_turns)
    }


class Echoed(NamedTuple):
    """Thoughts that a request repeats, and their tokens, ``None`` if not yet counted."""

    thoughts: Thoughts
    tokens: int | None


class SystemPrompt(NamedTuple):
    """The system prompt with all documents and the file at the path ``project``, the note, and the tokens of each."""

    text: str
    prompt_tokens: int
    document_tokens: int
    note: str = ""
    note_tokens: int = 0
    project: str = ""
    project_tokens: int = 0


def system_text(system_prompt: str, documents: Iterable[Document]) -> str:
    """Return the system message: the prompt, then each document under its name."""
    return "\n\n".join([system_prompt, *(f"# {document.name}\n\n{document.content}" for document in documents)])


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """The part of a snapshot that is not in the database: the target, system prompt, the model's limit and the tools.

    Unless ``is_exact``, the tokens are upper bounds. The model is sent attachments of the ``accepted`` kinds and only
    the names of others. ``echo`` says which of the model's thoughts are sent to it again.
    """

    target: Target
    system_prompt: SystemPrompt
    limit: Limit
    offer: ToolOffer = NO_OFFER
    is_exact: bool = True
    accepted: frozenset[Kind] = ALL_SENT
    echo: Echo = NO_ECHO

    @property
    def fixed_tokens(self) -> int:
        """The estimated tokens that every request has: system prompt, documents, project file, note and tools."""
        system = self.system_prompt
        told = system.prompt_tokens + system.document_tokens + system.note_tokens + system.project_tokens
        return told + TOKENS_PER_MESSAGE + self.offer.tokens

    def surely_takes(self, most_tokens: int) -> bool:
        """Return whether a message of ``most_tokens`` estimated tokens fits even with the largest correction."""
        chosen, learned = self.target.persona.settings, Calibration(LARGEST_FACTOR)
        least = budget(self.limit, chosen.context_usage_threshold, chosen.max_output_tokens, learned)
        return self.fixed_tokens + most_tokens <= least.room.budget


class RequestStart(NamedTuple):
    """The beginning of a request: the start of its window, and the parts that it repeats from the last request.

    If the last request left out older messages, it began with ``first_message_id``. Its memory items ``hot`` are
    repeated only with the same ``summary``; if ``hot`` is ``None``, items are chosen anew.
    """

    window: datetime
    first_message_id: int | None = None
    hot: tuple[Item, ...] | None = None
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """A context at one moment: the view of a thread, and the system prompt and budget of the next request.

    ``newest_operation_id`` names the newest operation that breaks the prefix of requests. If the last request of this
    process left out older messages, it began with ``first_message_id``. ``hot`` are the memory items of the system
    message. ``echoed`` has thoughts by the ids of replies. If ``is_plain``, earlier turns are sent as plain text.
    ``unread`` is a sentence about operations that cannot be read, ``""`` if there are none.
    """

    request_settings: RequestSettings
    view: View
    budget: Budget
    newest_operation_id: int = 0
    fold_is_undone: bool = False
    last_spoken: datetime | None = None
    first_message_id: int | None = None
    hot: tuple[Item, ...] = ()
    echoed: Mapping[int, Echoed] = field(default_factory=dict)
    is_plain: bool = False
    unread: str = ""

    @property
    def withheld_notice(self) -> str:
        """Say how many messages exchanged with ELIZA are not sent to the model that is asked; ``""`` without any."""
        if not self.view.withheld:
            return ""
        number = counted(len(self.view.withheld), "message")
        return f"{self.view.heard_by} does not see the {number} that you exchanged with ELIZA."


def without_eliza(rows: Sequence[_Said]) -> Sequence[_Said]:
    """Leave out ELIZA's replies, which other models would imitate, and the questions that only ELIZA answered.

    If ELIZA said nothing, ``rows`` itself is returned.
    """
    turns = {row.turn_id for row in rows if row.model == ELIZA}
    if not turns:
        return rows
    answered = {row.turn_id for row in rows if row.role is Role.ASSISTANT and row.model != ELIZA}
    return [row for row in rows if row.model != ELIZA and (row.turn_id not in turns or row.turn_id in answered)]


def usable(view: Sequence[Message]) -> list[Message]:
    """Leave out replies in progress, empty rows, calls without a result, and results without a call.

    If calls of a turn share an id, only the first is sent. A question is left out if its turn failed without words and
    the next message repeats it.
    """
    calls = {(row.turn_id, row.tool_call_id): row.id for row in reversed(view) if row.role is Role.TOOL_USE}
    results = {(row.turn_id, row.tool_call_id): row.id for row in reversed(view) if row.role is Role.TOOL_RESULT}
    paired = {id_ for key in calls.keys() & results.keys() for id_ in (calls[key], results[key])}
    rows = [
        row
        for row in view
        if (row.id in paired if row.role in TOOL_ROLES else row.status is not Status.STREAMING and is_filled(row))
    ]
    failed_turns = {row.turn_id for row in view if row.status.broke_off and not is_filled(row)}
    return _once(rows, failed_turns) if failed_turns else rows


def _once(rows: list[Message], failed_turns: set[int]) -> list[Message]:
    """Leave out each question of a failed turn that the next message repeats."""

    def is_repeated(row: Message, following: Message) -> bool:
        return (
            row.turn_id in failed_turns
            and row.role is following.role is Role.USER
            and row.content.strip() == following.content.strip()
            and row.attachments == following.attachments
        )

    return [row for row, following in pairwise(rows) if not is_repeated(row, following)] + rows[-1:]
