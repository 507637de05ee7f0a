"""``chorus ask`` sends one message or carries out one command, without a prompt."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from typing import TYPE_CHECKING

from chorus_cli.app import App, opened
from chorus_cli.attachments.files import document_files
from chorus_cli.core.errors import CommandError, DatabaseReadOnlyError, UsageError
from chorus_cli.core.text.command_signs import is_command, is_message, unescaped
from chorus_cli.machine.paths import paths
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.storage.postgres.address import without_password
from chorus_cli.subcommands.conventions import go_where_told, joined_text, options, screens
from chorus_cli.terminal import one_shot
from chorus_cli.turns.rules import refuse_unreadable_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine, Mapping, Sequence

    from chorus_cli.attachments.service.attachments import Attachments, Prepared

_PIPED_NAME = "standard input"
_WHERE = {"--home": "home", "--log": "log", "--persona": "persona"}
"""The options that choose where to ask, with their names in the parsed command line."""


def ask(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Coroutine[None, None, int]:
    """Return a coroutine that sends one message or carries out one command, and returns the exit code.

    For a message, standard input is read here, before signals are handled, so that a signal ends the reading.
    """
    text = joined_text(chosen.text)
    if is_command(text) and not is_message(text):
        return _ask_command(text, chosen, environment)
    piped = one_shot.standard_input()
    typed = unescaped(text)
    if not (typed.strip() or (isinstance(piped, str) and piped.strip())):
        raise CommandError("There is nothing to ask. Usage: chorus ask TEXT, or pipe the text in.")
    return _ask_model(typed, piped, chosen, environment)


async def _ask_command(line: str, chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    async with opened(options(chosen, environment), environment) as app:
        _apply_options(app, chosen)
        from chorus_cli.catalogue import goes_on, sends_text
        from chorus_cli.framework.command_line import resolve
        from chorus_cli.terminal.one_command import Manner, carry_out

        services = app.services()
        await app.current.settle()
        answers, asides = screens(app)
        bound = resolve(services.registry, line, app.clock.now())
        is_question = sends_text(services, bound.command)
        _refuse_options(line, chosen, ("attach",) if is_question else ("json", "attach"))
        told = None if is_question else asides
        if not await go_where_told(app, chosen, told, goes_on=goes_on(bound.command)) and is_question:
            app.current.begin_own_thread()
        manner = Manner(as_json=chosen.json, again=partial(_again, chosen))
        with app.notifier.heard_by(asides.notice, _dropped):
            code = await carry_out(bound, services, answers, asides, manner)
        for stopped in await app.break_off():
            asides.notice(stopped)
        return code


async def _ask_model(typed: str, piped: str | bytes, chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    obstacle = "" if "private" in chosen else paths(environment, vars(chosen).get("home")).obstacle
    if obstacle:
        raise DatabaseReadOnlyError(f"{obstacle}, so nothing was stored and nothing was sent.")
    async with opened(options(chosen, environment), environment) as app:
        await app.current.settle()
        if not await go_where_told(app, chosen):
            app.current.begin_own_thread()
        _apply_options(app, chosen)
        target = app.current.target()
        answers, asides = screens(app)
        for warning in await app.current.new_warnings(target):
            asides.notice(warning)
        refuse_unreadable_settings(target.persona)
        await one_shot.refuse_overspent(app.turns().costs, target.persona, target.choice.model, asides)
        if target.choice.model != ELIZA:
            app.warm_client(target.choice.model)
            app.connect_tools()
        with app.notifier.heard_by(asides.notice, _dropped):
            message = await _prepared(typed, piped, target.choice.model, app.turns().attachments, chosen.attach)
        conversation = app.turns().conversation
        events = one_shot.answered(message, target, partial(_again, chosen, "/retry"), conversation)
        return await one_shot.shown(target, events, conversation, answers, asides, as_json=chosen.json)


def _again(chosen: argparse.Namespace, command: str, thread: int) -> str:
    """Return advice to ask again with ``command`` in thread number ``thread`` (0: unknown); empty in a private run."""
    if "private" in chosen:
        return ""
    if not thread:
        return "Your message is kept in the log."
    given = {option: vars(chosen).get(name) for option, name in _WHERE.items()} | {"--thread": thread}
    if "log" in chosen:
        given["--log"] = without_password(chosen.log) or chosen.log
    options = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    return f"Your message is kept; {shlex.join(['chorus', 'ask', *options, command])} asks again."


def _dropped(_sentence: str) -> None:
    """Drop a sentence that is for the prompt of a chat."""


async def _prepared(
    typed: str, piped: str | bytes, model: str, attachments: Attachments, files: Sequence[str]
) -> Prepared:
    """Attach the files of the options, the files that the text names, and a picture or a PDF on standard input."""
    given = [await asyncio.to_thread(document_files.read_bytes, each) for each in files]
    if isinstance(piped, bytes):
        given.append((_PIPED_NAME, piped))
        piped = ""
    prepared = await attachments.prepared(typed, model, given)
    # Piped text names no files: its at signs are text.
    return prepared._replace(text="\n\n".join(part for part in (prepared.text, piped) if part.strip()))


def _apply_options(app: App, chosen: argparse.Namespace) -> None:
    """With --effort, set it for this run. With --persona, let the next chat open with the same persona as before."""
    app.current.is_aside = app.current.is_aside or "persona" in chosen
    if "effort" in chosen:
        app.personas.set_for_this_run(app.current.slug, "effort", chosen.effort)


def _refuse_options(line: str, chosen: argparse.Namespace, refused: Sequence[str]) -> None:
    """Refuse the options that need a message."""
    for name in refused:
        if vars(chosen).get(name):
            command = line.split(maxsplit=1)[0]
            raise UsageError(f"--{name} needs a message, but {command} is a command. Leave out --{name}.")
