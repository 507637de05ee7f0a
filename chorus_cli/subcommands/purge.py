"""``chorus purge``: messages, and all that repeats them or was made of them, overwritten for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.app import opened
from chorus_cli.core.errors import CommandError
from chorus_cli.stores.rules.purging import NO_CRITERIA, WITH_BACKUPS, BackupsFate, asked_purge
from chorus_cli.stores.service.purging import BACKUPS, NONE_HOLDS, REWRITES, still_there
from chorus_cli.subcommands.conventions import joined_text, options, print_json
from chorus_cli.subcommands.exit_codes import DONE, FAILED
from chorus_cli.terminal.screen.output import agreed, can_ask, standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from chorus_cli.stores.rules.purging import WantedPurge
    from chorus_cli.stores.service.purging import Found, Purging


async def purge(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Show the extent of a purge and, if the user agrees, carry it out; offer to rewrite backups."""
    given = options(chosen, environment)
    async with opened(given._replace(persona=None), environment) as app:
        purging = app.services().upkeep.purging
        text = joined_text([_phrase(word, chosen.subject) for word in chosen.words])
        if chosen.subject == BACKUPS:
            if text:
                raise CommandError("purge backups takes no words: it rewrites those that hold texts purged before.")
            return await _rewritten(purging, await purging.in_backups(), chosen, ({}, NO_CRITERIA))
        limit = f" --persona {given.persona}" if given.persona and chosen.subject != "persona" else ""
        asked = asked_purge(chosen.subject, f"{text}{limit}", app.clock.now())
        found = await purging.find(asked, app.current.slug, standard_error().notice)
        names = found.extent.backups
        if chosen.dry_run or asked.is_dry or (found.extent.is_empty and not names):
            return _shown(found, chosen)
        report = found.extent.as_json()
        if found.extent.is_empty:
            return await _rewritten(purging, names, chosen, ({**report, "purged": False}, found.wanted))
        if not await _is_agreed(found, chosen):
            return FAILED
        done = await purging.carry_out(found, standard_error().notice, with_backups=chosen.backups)
        if not chosen.json:
            standard_output().line(done.sentence)
        return await _rewritten(purging, done.backups, chosen, ({**report, "purged": True}, found.wanted))


def _shown(found: Found, chosen: argparse.Namespace) -> int:
    if chosen.json:
        print_json({**found.extent.as_json(), "purged": False})
    elif found.extent.is_empty and not found.extent.backups:
        standard_output().line(found.extent.text_of_none())
    else:
        fate = BackupsFate.of(with_backups=chosen.backups, is_dry=True)
        standard_output().line(f"{found.extent.text(fate)}\nNothing was purged.")
    return DONE


async def _is_agreed(found: Found, chosen: argparse.Namespace) -> bool:
    if not chosen.yes or not chosen.json:
        standard_error().error(found.extent.text(BackupsFate.of(with_backups=chosen.backups)))
    if chosen.yes or await agreed("Overwrite all of that for good? No undo brings it back.", standard_error()):
        return True
    standard_error().notice(
        "Nothing was purged." if can_ask() else "Nothing was purged: agree at a terminal, or add --yes."
    )
    return False


async def _rewritten(
    purging: Purging,
    names: tuple[str, ...],
    chosen: argparse.Namespace,
    purge: tuple[Mapping[str, object], WantedPurge],
) -> int:
    """Rewrite the backups if that was asked for, or is agreed to, and report; ``purge`` is its report and criteria."""
    report, criteria = purge
    wanted = bool(names) and chosen.backups
    told = "" if names or criteria != NO_CRITERIA else NONE_HOLDS
    if names and not wanted and not chosen.json:
        wanted = not chosen.yes and await agreed(still_there(names), standard_error())
        told = (
            ""
            if wanted
            else f"The backups are as they were: {', '.join(names)}. {_AGAIN if criteria.words else _LATER}"
        )
    failures: list[str] = []
    if wanted:
        told = await purging.rewrite_backups(failures.append, criteria)
    remaining = await purging.in_backups(criteria) if wanted else names
    if chosen.json:
        print_json({**report, "backups": [*remaining]})
    elif told:
        standard_output().line(told)
    for sentence in failures:
        standard_error().error(sentence)
    return FAILED if failures else DONE


_AGAIN = f"The same purge with {WITH_BACKUPS} rewrites them."
_LATER = f"{REWRITES} them."


def _phrase(word: str, subject: str) -> str:
    """Return an argument of the shell as a term of a search: one with blanks is a phrase."""
    return f'"{word}"' if subject == "search" and len(word.split()) > 1 and '"' not in word else word
