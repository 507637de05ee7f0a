"""Functions that several subcommands share: for options, screens, threads, words and JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from chorus_cli.app import App, Options
from chorus_cli.core.errors import CommandError, PersonaError
from chorus_cli.terminal.screen.output import Screen, standard_error, standard_output


def options(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Options:
    """Return the options with which the app is opened."""
    given = vars(chosen)
    persona, model, home, log = (given.get(name) for name in ("persona", "model", "home", "log"))
    result = Options(persona, model, home, "private" in given, log)
    if any(_is_mangled(name or "") for name in (result.model, environment.get("CHORUS_MODEL"))):
        raise CommandError("The name of the model is not valid UTF-8.")
    return result


def screens(app: App) -> tuple[Screen, Screen]:
    """Return the screens for answers and for everything else, plain if the persona's settings say so."""
    both = standard_output(), standard_error()
    with suppress(PersonaError):
        if app.current.target().persona.settings.plain:
            for screen in both:
                screen.make_plain()
    return both


async def go_where_told(
    app: App, chosen: argparse.Namespace, asides: Screen | None = None, *, goes_on: bool = False
) -> bool:
    """Go to the thread that the options choose, and name it on ``asides``; return whether the options choose a thread.

    If the options choose no thread, a command that ``goes_on`` acts as with ``-c``.
    """
    is_placed = "thread" in chosen or "goes_on" in chosen
    if is_placed or goes_on:
        await app.current.look_into(vars(chosen).get("thread"))
        if asides is not None:
            asides.notice(f"In thread #{app.current.thread_number}.")
    return is_placed


def joined_text(words: Sequence[str]) -> str:
    """Join the words of the command line."""
    text = " ".join(words)
    if _is_mangled(text):
        raise CommandError("The text on the command line is not valid UTF-8, so nothing was sent.")
    return text


def print_json(value: object) -> None:
    """Print one JSON value. JSON escapes control characters, so the output is safe for a terminal."""
    standard_output().write(json.dumps(value, indent=2) + "\n")


def _is_mangled(text: str) -> bool:
    """Return whether the text has surrogates: Python puts them in place of bytes that it cannot decode."""
    return any("\ud800" <= sign <= "\udfff" for sign in text)
