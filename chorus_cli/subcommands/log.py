"""Subcommands that read the log: ``log``, ``search`` and ``cost``.

Each needs one or two services, and composing all of them would double its time.
"""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.app import opened
from chorus_cli.context.service.transcript import (
    newest_of,
    numbers_of,
    operations_of,
    readable_thoughts,
    selected,
    thoughts_in,
    transcript,
)
from chorus_cli.core.time import timespan
from chorus_cli.log.rows.search_index import Scope
from chorus_cli.log.rules.journal import log_marks, unread_notice
from chorus_cli.log.rules.messages import Message, is_reply_of_calls
from chorus_cli.log.rules.operations import NO_NUMBERS, Numbers
from chorus_cli.log.rules.wording import entry_as_json, log_entry
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.service.costs import Costs, Grouping
from chorus_cli.personas.service.persona_admin import PersonaAdmin
from chorus_cli.recall.service import Search
from chorus_cli.sessions.rows import leave_behind
from chorus_cli.subcommands.conventions import joined_text, options, print_json
from chorus_cli.subcommands.exit_codes import DONE, NOTHING_FOUND
from chorus_cli.terminal.screen.output import standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from datetime import datetime

    from chorus_cli.app import App
    from chorus_cli.log.rules.journal import LogMarks
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.terminal.screen.output import Screen


_MOST_FOUND = 100


async def log(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Print all messages of a persona, oldest first."""
    given = options(chosen, environment)
    async with opened(given._replace(persona=None), environment) as app:
        since = _since(chosen, app.clock.now())
        slug, name = await _roster(app).logged(given.persona, app.current.slug)
        selection = await selected(app.store, slug, chosen.thread, since)
        if chosen.newest is not None:
            selection = await newest_of(app.store, selection, chosen.newest)
        operations = await operations_of(app.store, selection)
        if told := unread_notice(operations):
            standard_error().notice(told)
        entries, marks = transcript(app.store, selection, operations), log_marks(operations, selection.thread_id)
        numbers = await numbers_of(app.store, slug)
        if chosen.json:
            printed = [entry async for entry in entries]
            found = await thoughts_in(app.store, printed)
            print_json([entry_as_json(entry, marks, numbers, found) for entry in printed])
        else:
            thoughts = partial(readable_thoughts, app.store) if chosen.thoughts else None
            await show_transcript(entries, marks, name, standard_output(), numbers, thoughts)
    return DONE


async def search(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Search the log of all personas or of one; the exit code is 1 when nothing is found, like grep's."""
    given, text = options(chosen, environment), joined_text([_phrase(word) for word in chosen.words])
    async with opened(given._replace(persona=None), environment) as app:
        since = _since(chosen, app.clock.now())
        slug = (await _roster(app).logged(given.persona, app.current.slug))[0] if given.persona else None
        scope = Scope(since, slug, _MOST_FOUND, with_thoughts=chosen.thoughts)
        findings = await Search(app.store, app.clock).find(text, scope, standard_error().notice)
        if chosen.json:
            print_json(findings.as_json())
        else:
            from chorus_cli.recall.commands import findings_text  # noqa: PLC0415 - it brings the commands along

            show = standard_error().notice if findings.is_empty else standard_output().line
            show(findings_text(findings._replace(wider=_quoted(findings.wider)), app.personas, since))
    return NOTHING_FOUND if findings.is_empty else DONE


async def cost(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Show the costs of replies and summaries, of all personas or of one."""
    given = options(chosen, environment)
    async with opened(given._replace(persona=None), environment) as app:
        since = _since(chosen, app.clock.now())
        slug = (await _roster(app).logged(given.persona, app.current.slug))[0] if given.persona else None
        costs = Costs(app.store, app.clock, ModelMap().prices)
        report = await costs.report(Grouping(chosen.by), since, slug)
        if chosen.json:
            print_json(report.as_json())
        else:
            from chorus_cli.models.commands import cost_report  # noqa: PLC0415 - it brings the commands along
            from chorus_cli.terminal.screen.drawing import draw  # noqa: PLC0415 - so does this

            draw(cost_report(report), standard_output())
    return DONE


async def show_transcript(
    entries: AsyncIterator[Message | Operation],
    marks: LogMarks,
    persona: str,
    screen: Screen,
    numbers: Numbers = NO_NUMBERS,
    thoughts: Callable[[Message], Awaitable[str]] | None = None,
) -> None:
    """Print each entry after its local time.

    ``numbers`` are those of the persona's threads. ``thoughts`` reads the ones before a message, to be shown with it.
    """
    async for entry in entries:
        if not isinstance(entry, Message):
            screen.line(f"{log_entry(entry, marks, persona, numbers)}\n")
        elif not is_reply_of_calls(entry):
            text = await thoughts(entry) if thoughts else ""
            screen.line(f"{log_entry(entry, marks, persona, numbers, text)}\n")


def _roster(app: App) -> PersonaAdmin:
    return PersonaAdmin(app.store, app.clock, app.personas, app.paths.deleted_personas, leave_behind)


def _since(chosen: argparse.Namespace, now: datetime) -> datetime | None:
    return None if chosen.since is None else timespan.parse(chosen.since, now, after_since=True).before(now)


def _phrase(word: str) -> str:
    """Return an argument of the shell as a term of the query: one with blanks is a phrase."""
    return f'"{word}"' if len(word.split()) > 1 and '"' not in word else word


def _quoted(terms: str) -> str:
    """Return terms of the query as they are typed at a shell, which would take ``*`` for names of files."""
    return shlex.quote(terms) if '"' in terms else shlex.join(terms.split())
