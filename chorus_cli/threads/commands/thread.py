"""``/thread``: the persona's conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated

from chorus_cli.context.service.transcript import numbers_of
from chorus_cli.core.errors import CommandError, UnknownThreadError
from chorus_cli.core.text.phrases import counted, enumerated, quoted, shortened
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter, flag
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import CURRENT, Output, Question, Report, Said, Table, Text, data_of
from chorus_cli.log.rules.messages import Message, says_nothing
from chorus_cli.log.rules.threads import Thread, ThreadState, number_in
from chorus_cli.log.rules.wording import entry_as_json, local, log_entry
from chorus_cli.services import Services
from chorus_cli.threads.service.running_turn import RunningTurn
from chorus_cli.threads.service.threads import ListedThread
from chorus_cli.turns.commands import MESSAGE

GROUP: CommandGroup[Services] = CommandGroup(
    "thread", "Conversations with one persona, each with a context of its own.", aliases=("t",)
)

_ALL = "all"
_MOST_CLOSED = 50
_COLUMNS = ("", "Thread", "Title", "In context", "Messages", "Last talked", "State")


def _with_closed(text: str, _now: datetime) -> str:
    if text.casefold() != _ALL:
        raise CommandError(f'/thread list takes only "{_ALL}", not {quoted(text)}.')
    return text


def _offered(services: Services, text: str) -> Sequence[Candidate]:
    """Offer the open threads and the newest closed threads whose titles begin with ``text``, unless it is empty."""
    threads, begun = services.threads.offers(), text.casefold()
    closed = [each for each in threads if each.closed_at and begun and each.name.casefold().startswith(begun)]
    return _candidates([*(each for each in threads if not each.closed_at), *closed[-_MOST_CLOSED:]], text)


def _open(services: Services, text: str) -> Sequence[Candidate]:
    threads = [thread for thread in services.threads.offers() if thread.closed_at is None]
    return [*_candidates(threads, text), Candidate(_ALL, "every thread")]


def _candidates(threads: Sequence[Thread], text: str) -> list[Candidate]:
    """Offer each thread once, by its number or, once a title is begun, by its title."""
    sign = text[: text.startswith("#")]
    if text.removeprefix("#").isdecimal() or text in {"", "#"}:
        return [Candidate(f"{sign}{thread.number}", thread.name) for thread in threads]
    return [Candidate(_words(thread), f"#{thread.number}") for thread in threads if thread.name]


def _words(thread: Thread) -> str:
    """Return a thread's title without the ellipsis at its end, so that it can be typed."""
    return thread.name.removesuffix("…").rstrip()


ALL = Parameter(_ALL, _with_closed, "also the closed ones", lambda _services, _text: [Candidate(_ALL)])
THREAD = replace(
    TEXT, name="thread", help="a number such as 3 or #3, a title, or the unique beginning of a title", complete=_offered
)
OPEN = replace(THREAD, help=f'{THREAD.help}; "{_ALL}" for every thread', complete=_open)
THOUGHTS = flag("with the model's thoughts before its replies")
TITLE = replace(TEXT, name="title", help="what the thread is about, in a few words")
NEW_TITLE = replace(
    TITLE,
    help="the new title, after a number to rename another thread; without a title, the thread is named after its first "
    "message",
)


@GROUP.command("list", "")
async def listing(services: Services, closed: Annotated[str, ALL] = "") -> Table:
    """List the open threads and mark the current one; all adds the closed ones.

    A thread is running while this or another Chorus writes a reply in it. A thread is interrupted if its newest reply
    broke off; there, /continue goes on and /retry asks again.

    Examples:
        /thread
        /thread list all
    """
    here = services.current.thread_id
    listed = await services.threads.listed(closed=bool(closed))
    rows = [_row(each, here=each.thread.id == here) for each in listed]
    values = [
        {**each.thread._asdict(), **each._asdict(), "thread": each.thread.number, "current": each.thread.id == here}
        for each in listed
    ]
    return Table("", _COLUMNS, tuple(rows), cut=frozenset({"Title"}), data=data_of(values))


@GROUP.command("switch", default=True, listed="everyday")
async def switch(services: Services, thread: Annotated[str, THREAD]) -> Report | RunningTurn:
    """Go to another thread; /thread lists them.

    Give its number, its title or the beginning of its title; a closed thread is reopened. The next run continues there
    too. A reply is shown if it is being written there or if you have not seen it yet.

    Examples:
        /thread 3
        /thread rome
    """
    chosen = await _found(services, thread)
    await services.current.turn_to_thread(chosen.id)
    turn = services.replies.in_thread(chosen.id)
    if turn is not None:
        return turn
    opened = [Text(f"Thread #{chosen.number} is open again.")] if chosen.closed_at is not None else []
    return Report((*opened, *(await _arrived(services)).parts))


@GROUP.command("new")
async def new(services: Services, title: Annotated[str, TITLE] = "") -> Report:
    """Open a new thread with an empty context, and switch to it.

    A persona of a character card says its greeting.

    Examples:
        /thread new
        /thread new The trip to Rome
    """
    await services.threads.new(shortened(title))
    target, arrived = services.current.target(), await _arrived(services)
    if not await services.cards.first_greeting(target):
        return arrived
    return replace(arrived, parts=(*arrived.parts, Said(await services.cards.greet(target, 1), target.persona.name)))


@GROUP.command("fork", guesses=("fork",))
async def fork(services: Services, message: Annotated[int | None, MESSAGE] = None) -> Report:
    """Open a new thread with the context of this one, and switch to it.

    With a message's number, as /search shows it, the new thread gets the context up to the reply to that message.
    From then on, what happens in one thread does not change the other. /undo closes the new thread.

    Examples:
        /thread fork
        /thread fork 12
    """
    forked = await services.journal.fork(services.current.target(), message)
    await services.current.turn_to_last_thread()
    return await _arrived(services, f"It begins as a {forked.describe()}. /undo closes it and goes back.")


@GROUP.command("rename")
async def rename(services: Services, title: Annotated[str, NEW_TITLE] = "") -> Text:
    """Give a title to this thread, or to another: /thread rename 3 TITLE.

    Examples:
        /thread rename The trip to Rome
        /thread rename 3 The trip to Rome
    """
    thread, wanted = await _thread_and_title(services, title)
    renamed = await services.threads.rename(thread, shortened(wanted))
    old = f"{thread.number} {thread.title}" if thread.title else f"without a title in thread #{thread.number}"
    services.done_beside(f"renamed thread #{thread.number}, which /undo does not revert; /thread rename {old} does.")
    now = f"is now called {renamed.title}" if renamed.title else "is named after its first message again"
    before = f"its title was {thread.title}" if thread.title else "it had no title"
    return Text(f"Thread #{thread.number} {now}; {before}.")


@GROUP.command("kill", "close")
async def kill(services: Services, thread: Annotated[str, OPEN]) -> Report | Question:
    """Close a thread, or all: this stops replies and deletes nothing.

    A closed thread is left out of new sessions and of the list of /thread; /thread N opens it again.

    Examples:
        /thread kill 3
        /thread kill all
    """
    if thread.casefold() == _ALL:
        threads = [thread for thread in await services.threads.all() if thread.closed_at is None]
        if not threads:
            raise CommandError("No thread is open.")
        whose = f"{counted(len(threads), 'thread')} of {services.current.target().persona.name}"
        return Question(
            f"Close {whose}? This stops their replies; it deletes no message.",
            lambda: _closed(services, threads),
            Text("No thread was closed."),
        )
    chosen = await _found(services, thread)
    if chosen.closed_at is not None:
        raise CommandError(f"Thread #{chosen.number} is closed already. /thread {chosen.number} opens it again.")
    return await _closed(services, [chosen])


@GROUP.command("history")
async def history(
    services: Services, thread: Annotated[str, THREAD] = "", *, thoughts: Annotated[bool, THOUGHTS] = False
) -> Text | Output:
    """Print everything ever said in this thread, or another.

    Examples:
        /thread history
        /thread history 3
        /thread history 3 --thoughts
    """
    chosen = await _found(services, thread) if thread else await services.threads.current()
    found = await services.threads.history(chosen, with_thoughts=thoughts)
    names = services.current.target().persona.speakers
    shown = [each for each in found.entries if not isinstance(each, Message) or not says_nothing(each)]
    numbers = await numbers_of(services.context.store, services.current.slug)
    values = data_of([entry_as_json(each, found.marks, numbers, found.thoughts) for each in found.entries])
    if not shown:
        return Text(f"Nothing was said in thread #{chosen.number} yet.", values)
    texts = {id_: each.text for id_, each in found.thoughts.items()}
    lines = [log_entry(each, found.marks, names, thoughts=texts.get(each.id, "")) for each in shown]
    return Output("\n\n".join(lines), values)


def _row(listed: ListedThread, *, here: bool) -> tuple[str, ...]:
    thread, is_answered = listed.thread, listed.state is ThreadState.RUNNING and listed.waiting
    return (
        CURRENT if here else "",
        f"#{thread.number}",
        _fork_first(thread.name),
        f"{listed.in_view:,}",
        f"{thread.messages:,}",
        local(thread.last_spoken) if thread.last_spoken else "never",
        f"{listed.state}, {listed.waiting} waiting" if is_answered else str(listed.state),
    )


def _fork_first(title: str) -> str:
    """Put the mark of a fork before the title, because the end of a long title is cut off."""
    name, begun, end = title.rpartition(" (fork")
    return f"(fork{end} {name}" if begun and end.endswith(")") else title


async def _found(services: Services, typed: str) -> Thread:
    try:
        return await services.threads.found(typed)
    except UnknownThreadError as error:
        raise UnknownThreadError(error.wanted, _meant(services, typed)) from error


def _meant(services: Services, typed: str) -> str:
    """Suggest a thread whose title looks like ``typed``, or a command of this group."""
    if number_in(typed) is not None:
        return ""
    titles = {_words(each).casefold(): f"/thread {each.number} ({each.name})" for each in services.threads.offers()}
    first_word = typed.casefold().split()[0]
    commands = {word: f"/thread {word}" for word in GROUP.words if word}
    beginning = [word for word in commands if word.startswith(first_word)]
    near = get_close_matches(typed.casefold(), titles, 1) or beginning or get_close_matches(first_word, commands, 1)
    return f"Did you mean {(titles | commands)[near[0]]}?" if near else ""


async def _arrived(services: Services, *told: str) -> Report:
    here = await services.threads.current()
    return Report(tuple(map(Text, (f"Thread {here.label}", *told, *await services.current.notices()))))


async def _thread_and_title(services: Services, typed: str) -> tuple[Thread, str]:
    """Read ``3 TITLE`` or ``TITLE``; a title that begins with a number must follow the number of its thread."""
    first, _, rest = typed.strip().partition(" ")
    here = await services.threads.current()
    if not rest.strip() or (number := number_in(first)) is None:
        return here, typed
    for thread in await services.threads.all():
        if thread.number == number:
            return thread, rest
    meant = f"If the title begins with that number, type /thread rename {here.number} {shortened(typed.strip())}."
    raise UnknownThreadError(f"#{number}", meant)


async def _closed(services: Services, threads: Sequence[Thread]) -> Report:
    before = services.current.thread_id
    not_sent = services.replies.not_sent_line(thread.id for thread in threads)
    elsewhere = enumerated([f"#{thread.number}" for thread in await services.threads.close(threads)])
    number = threads[0].number
    closed, way_back = f"thread #{number}", f"/thread {number} opens it again."
    if len(threads) > 1:
        closed, way_back = f"{len(threads)} threads", "/thread N opens one again."
    services.done_beside(f"closed {closed}, which /undo does not revert; {way_back}")
    done = f"Closed {closed}. {way_back}" + (f"\n{not_sent}" if not_sent else "")
    done += f"\nAnother Chorus goes on writing a reply in {elsewhere}." if elsewhere else ""
    arrived = (await _arrived(services)).parts if services.current.thread_id != before else ()
    return Report((Text(done), *arrived))
