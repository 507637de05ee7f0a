"""What each outer command does with an open app; without one the chat opens."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from chorus_cli.core.errors import CommandError
from chorus_cli.terminal.prompt.command_sign import is_command, unescaped
from chorus_cli.terminal.screen.output import refuse_closed_output, standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine, Mapping

    from chorus_cli.app import Options

    Subcommand = Callable[[argparse.Namespace, Mapping[str, str]], Coroutine[None, None, int]]

DONE, NOTHING_FOUND = 0, 1
_MOST_FOUND = 100


def carry_out(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Coroutine[None, None, int]:
    """Return the work of the outer command that was chosen; its result is the exit code.

    Raises:
        ChorusError: the command line or the standard input cannot be used.
    """
    subcommands: Mapping[str | None, Subcommand] = {
        None: chat,
        "ask": ask,
        "context": context,
        "log": log,
        "paths": show_paths,
        "personas": personas,
        "schema": show_schema,
        "search": search,
    }
    return subcommands[chosen.command](chosen, environment)


async def chat(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Open the chat."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError("The chat needs a terminal to type in. For one question use: chorus ask TEXT")
    refuse_closed_output()
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.chat import Chat  # noqa: PLC0415
    from chorus_cli.terminal.prompt.keyboard import typed_early, typing_ahead  # noqa: PLC0415

    with typing_ahead(for_nobody_else=True):
        early = typed_early()
        from chorus_cli.terminal.repl import Repl  # noqa: PLC0415
        from chorus_cli.terminal.screen.progress import Progress  # noqa: PLC0415 - the keyboard is taken before anything slow

        screen = standard_output()
        progress = Progress(screen)
        async with opened(_options(chosen, environment), environment, progress.paused) as app:
            repl = Repl(app.focus, Chat(app), screen, progress, app.report_bug, early)
            await repl.run(app.warm_up)
    return DONE


def ask(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Coroutine[None, None, int]:
    """Have one message answered, or one command carried out.

    What is piped in is read before anything else runs, so that a signal ends the waiting for it.
    """
    from chorus_cli.terminal.one_shot import standard_input  # noqa: PLC0415

    text = _argument_text(chosen.text)
    if is_command(text):
        return _ask_command(text, chosen, environment)
    message = "\n\n".join(part for part in (unescaped(text), standard_input()) if part.strip())
    if not message:
        raise CommandError("There is nothing to ask. Usage: chorus ask TEXT, or pipe the text in.")
    return _ask_model(message, chosen, environment)


async def _ask_command(line: str, chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.terminal import one_shot  # noqa: PLC0415

    async with opened(_options(chosen, environment), environment) as app:
        return await one_shot.carry_out(line, app.commands, standard_output(), standard_error())


async def _ask_model(message: str, chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.core.models.choice import ELIZA  # noqa: PLC0415
    from chorus_cli.terminal import one_shot  # noqa: PLC0415

    async with opened(_options(chosen, environment), environment) as app:
        await app.focus.settle()
        if app.focus.target().choice.model != ELIZA:
            app.warm_up()
        return await one_shot.ask(message, app.commands, app.conversation, standard_output(), standard_error())


async def context(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Show what would be sent now."""
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.services.context.report import context_report  # noqa: PLC0415
    from chorus_cli.terminal import one_shot  # noqa: PLC0415

    async with opened(_options(chosen, environment), environment) as app:
        if not chosen.json:
            return await one_shot.carry_out("/context", app.commands, standard_output(), standard_error())
        await app.focus.settle()
        target = app.focus.target()
        for warning in target.persona.warnings:
            standard_error().notice(warning)
        report = await context_report(app.context, target, app.clock.now())
        _print_json(report.as_json())
    return DONE


async def log(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Print what was ever said, oldest first."""
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.core.log.marks import log_marks  # noqa: PLC0415
    from chorus_cli.core.time import timespan  # noqa: PLC0415
    from chorus_cli.services.log.transcript import (  # noqa: PLC0415
        Selection,
        entry_as_json,
        operations_of,
        transcript,
    )
    from chorus_cli.terminal.screen.transcript import show_transcript  # noqa: PLC0415

    options = _options(chosen, environment)
    async with opened(options._replace(persona=None), environment) as app:
        now = app.clock.now()
        since = None if chosen.since is None else timespan.parse(chosen.since, now, after_since=True).before(now)
        slug, name = await app.roster.logged(options.persona, app.focus.slug)
        selection = Selection(slug, chosen.thread, since)
        operations = await operations_of(app.store, selection)
        entries, marks = transcript(app.store, selection, operations), log_marks(operations)
        if chosen.json:
            _print_json([entry_as_json(entry, marks) async for entry in entries])
        else:
            await show_transcript(entries, marks, name, standard_output())
    return DONE


async def search(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Look for words in everything that was ever said; the exit code is 1 when nothing is found, as grep's is."""
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.commands.search import findings_text  # noqa: PLC0415
    from chorus_cli.core.time import timespan  # noqa: PLC0415
    from chorus_cli.storage.sqlite.log.search_index import Scope  # noqa: PLC0415

    options, text = _options(chosen, environment), _argument_text([_phrase(word) for word in chosen.words])
    async with opened(options._replace(persona=None), environment) as app:
        now = app.clock.now()
        since = None if chosen.since is None else timespan.parse(chosen.since, now, after_since=True).before(now)
        slug = (await app.roster.logged(options.persona, app.focus.slug))[0] if options.persona else None
        findings = await app.search.find(text, Scope(since, slug, _MOST_FOUND), standard_error().notice)
        if chosen.json:
            _print_json(findings.as_json())
        elif findings.matches:
            standard_output().line(findings_text(findings, app.personas, since))
        else:
            standard_error().notice(findings_text(findings, app.personas, since))
    return DONE if findings.matches else NOTHING_FOUND


def _phrase(word: str) -> str:
    """Return an argument of the shell as it is searched: one with blanks is a phrase."""
    return f'"{word}"' if len(word.split()) > 1 and '"' not in word else word


async def personas(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """List your personas."""
    from chorus_cli.app import opened  # noqa: PLC0415
    from chorus_cli.terminal import one_shot  # noqa: PLC0415

    async with opened(_options(chosen, environment), environment) as app:
        if not chosen.json:
            return await one_shot.carry_out("/persona", app.commands, standard_output(), standard_error())
        members = await app.commands.roster.members()
        _print_json([member.as_json(active=member.persona.slug == app.focus.slug) for member in members])
    return DONE


async def show_schema(_chosen: argparse.Namespace, _environment: Mapping[str, str]) -> int:
    """Print the JSON Schema of a persona's settings."""
    from chorus_cli.core.settings.schema import schema_text  # noqa: PLC0415

    standard_output().write(schema_text())
    return DONE


async def show_paths(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Print where everything is kept."""
    from chorus_cli.adapters.machine.paths import paths  # noqa: PLC0415

    for name, target in paths(environment, vars(chosen).get("home")).listing():
        standard_output().line(f"{name:<9} {target}")
    return DONE


def _options(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Options:
    from chorus_cli.app import Options  # noqa: PLC0415

    given = vars(chosen)
    options = Options(given.get("persona"), given.get("model"), given.get("home"))
    if any(_is_mangled(name or "") for name in (options.model, environment.get("CHORUS_MODEL"))):
        raise CommandError("The name of the model is not valid UTF-8.")
    return options


def _argument_text(words: list[str]) -> str:
    """Join the words of the command line.

    Raises:
        CommandError: they are not valid text in the locale's encoding.
    """
    text = " ".join(words)
    if _is_mangled(text):
        raise CommandError("The text on the command line is not valid UTF-8, so nothing was sent.")
    return text


def _is_mangled(text: str) -> bool:
    """Return whether Python could not decode a text that it was given, and stands in half characters for its bytes."""
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _print_json(value: object) -> None:
    """Print one JSON value, raw: its own escapes make it safe for a terminal."""
    standard_output().write(json.dumps(value, indent=2) + "\n")
