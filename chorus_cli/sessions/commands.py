"""``/context save``, ``history``, ``show`` and ``restore``: the commands about sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.core.time import timestamps
from chorus_cli.framework.arguments import TEXT, Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Report, Table, Text, data_of, page_of
from chorus_cli.log.rules.calls import calls_in_words
from chorus_cli.log.rules.messages import MessageContent, words_of
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.log.rules.wording import local, told_by
from chorus_cli.personas.commands.persona import PERSONA
from chorus_cli.services import Services
from chorus_cli.sessions.rows import SessionRow
from chorus_cli.sessions.rules.format import STOPPED, Session, first_sentence

GROUP: CommandGroup[Services] = CommandGroup("context")

PAGE_SESSIONS = 10
_NUMBER = re.compile(r"(?:(.*\S)\s+|\s*)#?([0-9]{1,6})", re.DOTALL)


class AskedPage(NamedTuple):
    """A page of a persona's sessions, counted from 1; the persona ``""`` is the current one."""

    persona: str = ""
    page: int = 1


def _asked_page(text: str, _now: datetime) -> AskedPage:
    """Parse a persona's name, which may have several words, and the page number after it; both may be missing."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return AskedPage(text)
    return AskedPage((match[1] or "").lstrip(), int(match[2]))


def _offered(services: Services, _text: str) -> Sequence[Candidate]:
    offers = services.sessions.offers(services.current.slug)
    hints = [f"{local(row.timestamp)}  {shortened(row.description)}".strip() if row else "" for _, row in offers]
    return [Candidate(name, hint) for (name, _), hint in zip(offers, hints, strict=True)]


_MOST_PROBLEMS = 3

DESCRIPTION = replace(TEXT, name="description", help="a short description; its first 40 characters name the session")
SESSION = replace(TEXT, name="id", help="a session's name, how the name begins, or its description", complete=_offered)
WHOSE = Parameter(
    "persona page",
    _asked_page,
    f"a persona, a page of {PAGE_SESSIONS} sessions, or both: frodo, 2, or frodo 2",
    PERSONA.complete,
)


@GROUP.command("save", stoppable=True, guesses=("save",))
async def save(services: Services, description: Annotated[str, DESCRIPTION] = "") -> Text:
    """Save the context of all threads as a session with a summary.

    The context stays as it is. Sessions are files in the persona's folder and are kept forever. Writing the summary may
    take half a minute; if you stop it with Ctrl-C, the session is saved without a summary.

    Examples:
        /context save
        /context save auth refactor, don't lose this
    """
    await services.current.settle()
    saved = await services.sessions.save(services.current.target(), description)
    services.done_beside(f"saved session {saved.row.session_id}, which /undo does not delete.")
    row = saved.row
    lines = [
        f"Saved session {row.session_id}: {counted(row.message_count, 'message')}, ~{row.token_estimate:,} tokens",
        # If the summary was stopped, ``problem`` says so.
        "" if row.summary == STOPPED else row.summary,
        saved.problem,
        f"Not saved: {counted(saved.in_progress, 'reply', 'replies')} still in progress." if saved.in_progress else "",
    ]
    return Text("\n".join(line for line in lines if line))


@GROUP.command("history", guesses=("history", "sessions"))
async def history(services: Services, whose: Annotated[AskedPage | None, WHOSE] = None) -> Text | Report:
    """List the saved sessions of this persona or another, newest first.

    The list has the first sentence of each summary; /context show prints the whole summary.

    Examples:
        /context history
        /context history 2
        /context history frodo
        /context history frodo 2
    """
    asked = whose or AskedPage()
    slug = services.personas.find_any(asked.persona) if asked.persona else services.current.slug
    listing = await services.sessions.listing(slug)
    problems = [Text(sentence) for sentence in listing.problems[:_MOST_PROBLEMS]]
    if (rest := len(listing.problems) - _MOST_PROBLEMS) > 0:
        problems.append(Text(f"And {rest} more files cannot be used."))
    if not listing.rows:
        return Report((Text("No saved sessions."), *problems), data_of([]))
    shown, paging = page_of(listing.rows, asked.page, PAGE_SESSIONS)
    heads = ("Session", "When", "Description", "Summary", "Messages")
    table = Table("", heads, tuple(map(_row, shown)), cut=frozenset({"Description", "Summary"}))
    return Report((table, *paging, *problems), data_of(listing.rows))


@GROUP.command("show")
async def show(services: Services, session: Annotated[str, SESSION]) -> Report:
    """Show a saved session: its details, summary and messages.

    Examples:
        /context show 2026-02-12_auth-refactor
        /context show 2026-02-12
    """
    found, _, problem = await services.sessions.load(services.current.slug, session)
    names = services.personas.speakers(services.current.slug)
    numbers = await services.sessions.thread_numbers(services.current.slug, found)
    facts = Table("", ("", ""), _facts(found, numbers))
    blocks = (facts, Text(found.summary), Text(_transcript(found, names, numbers)))
    return Report((*blocks, *([Text(problem)] if problem else [])), data_of(found))


@GROUP.command("restore", guesses=("load",))
async def restore(services: Services, session: Annotated[str, SESSION] = "") -> Text:
    """Replace the context of all threads with a saved session.

    /context undo reverts this.

    Examples:
        /context restore 2026-02-12_auth-refactor
        /context restore 2026-02-12
        /context restore auth refactor, don't lose this
    """
    if not session:
        raise CommandError("Which session? /context history lists them.")
    before = services.current.target().thread_id
    (found, _, problem), restored = await services.sessions.restore(services.current.target(), session)
    count = counted(len(found.messages), "message")
    lines = [
        f"Restored session {found.session_id}: {count} in place of the old context. /context undo reverts this.",
        f"The log has {counted(restored.added, 'new message')} from the file." if restored.added else "",
        f"You are now in thread #{restored.thread.number}." if restored.thread.id != before else "",
        problem,
    ]
    return Text("\n".join(line for line in lines if line), brings_exchange=True)


def _row(row: SessionRow) -> tuple[str, ...]:
    described = shortened(row.description) or "none"
    return row.session_id, local(row.timestamp), described, first_sentence(row.summary), f"{row.message_count:,}"


def _facts(session: Session, numbers: Mapping[int, int]) -> tuple[tuple[str, str], ...]:
    return (
        ("Session", session.session_id),
        ("Saved", local(session.timestamp)),
        ("Description", session.description or "none"),
        ("Window", f"{local(session.window_start)} to {local(session.window_end)}"),
        ("Messages", f"{len(session.messages):,}"),
        ("Tokens", f"~{session.token_estimate:,}"),
        ("Threads", ", ".join(f"#{numbers[thread.id]} {thread.title}".strip() for thread in session.threads)),
    )


def _transcript(session: Session, names: Speakers, numbers: Mapping[int, int]) -> str:
    """Write every message with its time; if there are several threads, each has a heading."""
    many = len({message.thread_id for message in session.messages}) > 1
    paragraphs: list[str] = []
    last_thread = None
    for message in session.messages:
        if many and message.thread_id != last_thread:
            paragraphs.append(f"--- Thread #{numbers[message.thread_id]} ---")
        last_thread = message.thread_id
        paragraphs.append(_entry(message, names))
    return "\n\n".join(paragraphs)


def _entry(message: MessageContent, names: Speakers) -> str:
    stamp = f"{timestamps.local(message.timestamp):%Y-%m-%d %H:%M:%S}"
    broken = f"[{message.status}]" if message.status.broke_off else ""
    words = " ".join(filter(None, (words_of(message), calls_in_words(message.tool_calls or ""), broken)))
    return f"[{stamp}] {told_by(message.role, names)}: {words}"
