"""``chorus log`` prints the messages of a persona."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial

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
from chorus_cli.framework.arguments import moment
from chorus_cli.log.rules.journal import LogMarks, log_marks, unread_notice
from chorus_cli.log.rules.messages import Message, says_nothing
from chorus_cli.log.rules.operations import NO_NUMBERS, Numbers, Operation
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.log.rules.wording import entry_as_json, log_entry
from chorus_cli.personas.service.persona_admin import PersonaAdmin
from chorus_cli.sessions.rows import leave_behind
from chorus_cli.subcommands.conventions import options, print_json
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.screen.output import Screen, standard_error, standard_output


async def log(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Print the messages that the options select, by default all of a persona, oldest first; or copy the log."""
    if chosen.copy_to or chosen.copy_from:
        from chorus_cli.subcommands.log_copies import copy

        return await copy(chosen, environment)
    given = options(chosen, environment)
    async with opened(given._replace(persona=None), environment) as app:
        since = None if chosen.since is None else moment(chosen.since, app.clock.now())
        personas = PersonaAdmin(app.store, app.clock, app.personas, app.paths.deleted_personas, leave_behind)
        slug = await personas.logged(given.persona, app.current.slug)
        selection = await selected(app.store, slug, chosen.of_thread, since)
        operations = await operations_of(app.store, selection)
        if told := unread_notice(operations):
            standard_error().notice(told)
        marks = log_marks(operations, selection.thread_id)
        entries = transcript(app.store, selection, operations)
        if chosen.newest is not None:
            entries = newest_of(app.store, selection, operations, chosen.newest)
        numbers = await numbers_of(app.store, slug)
        if chosen.json:
            printed = [entry async for entry in entries]
            found = await thoughts_in(app.store, printed)
            print_json([entry_as_json(entry, marks, numbers, found) for entry in printed])
        else:
            thoughts = partial(readable_thoughts, app.store) if chosen.thoughts else None
            await show_transcript(entries, marks, app.personas.speakers(slug), standard_output(), numbers, thoughts)
    return DONE


async def show_transcript(
    entries: AsyncIterator[Message | Operation],
    marks: LogMarks,
    names: Speakers,
    screen: Screen,
    numbers: Numbers = NO_NUMBERS,
    thoughts: Callable[[Message], Awaitable[str]] | None = None,
) -> None:
    """Print each entry with its local time. ``thoughts`` returns the thoughts that are printed before a message."""
    async for entry in entries:
        if not isinstance(entry, Message):
            screen.line(f"{log_entry(entry, marks, names, numbers)}\n")
        elif not says_nothing(entry):
            text = await thoughts(entry) if thoughts else ""
            screen.line(f"{log_entry(entry, marks, names, numbers, text)}\n")
