"""What holds after any fault: nothing acknowledged is lost, nothing torn, no sentence untrue, and no bug is met."""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.machine.paths import Paths, paths
from chorus_cli.personas.service.personas import Personas
from chorus_cli.stores.rules.findings import Finding, State
from chorus_cli.stores.service import checks
from chorus_cli.stores.service.checks import check_home, check_log
from tests.faults.state import HomeState, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.actions import Action, Place
    from tests.faults.faulty_program import Ending, FaultyProgram

_BUG, _FAILED = 3, 1
_LASTING = (".lock", ".archived")
_KEPT_FILE = re.compile(r"(?<!cannot be )(?:kept|is) in (/\S+?)[.;]?(?:\s|$)")
_UNCHANGED = re.compile(
    r"left as it (?:was|is)|[Nn]othing was (?:changed|saved|sent|stored|kept|made|imported)"
    r"|is unchanged|was not stored|SQLite reported an error|cannot be (?:changed|written)|There is no room left"
)
_GOES_ON = ("The next start goes on with it", "start of Chorus notes it", "The next start of Chorus completes it")
UNCONFIRMED = "The disk did not confirm a change to"
_IS_DONE = (UNCONFIRMED, "Imported 2 new messages")


def violations(
    action: Action, before: HomeState, ending: Ending, place: Place, program: FaultyProgram, *, lasts: bool = False
) -> list[str]:
    """Return a sentence for everything that is wrong, at the end of a command and after the next start.

    ``lasts`` says that the fault struck all later calls too.
    """
    found = [*_at_the_end(ending)]
    unfinished = checks.temporary_files(paths({}, str(place.home.path)), datetime.now(UTC))
    if ending.is_killed or any(told in ending.errors for told in _GOES_ON):
        found += _at_the_next_start(place, program)
        after = state_of(place.home.path)
    else:
        after = state_of(place.home.path)
        found += _untrue(action, before, ending, place, after)
        found += _at_the_next_start(place, program)
    is_done = _is_done(action, place, ending)
    # While a fault lasts, nothing can be deleted: the next purge does it.
    is_over = ending.code == 0 and not lasts
    found += [f"left behind: {each}" for each in unfinished] if is_over else []
    if lost := before.lost_in(after):
        found += [] if action.replaces and is_done else [f"lost: {lost}"]
    if ending.code == 0 and not is_done:
        found.append("acknowledged, but not done")
    # A file whose row may be stored stays; the sentence says that the change is open.
    is_open = action.is_begun(place, ending) or UNCONFIRMED in ending.errors
    if not is_done and after != before and not is_open:
        found.append("neither done nor as before")
    return found


def _at_the_end(ending: Ending) -> Iterator[str]:
    if ending.code is None:
        yield "it hangs"
    elif ending.code == _BUG or "bug" in ending.errors + ending.output:
        yield "a bug is told"
    elif ending.code == _FAILED and not ending.errors.strip():
        yield "it fails without a sentence"
    elif ending.code not in {0, _FAILED} and not ending.is_killed:
        yield f"the exit code is {ending.code}"
    if "Traceback" in ending.errors:
        yield "a traceback is shown"


def _untrue(action: Action, before: HomeState, ending: Ending, place: Place, after: HomeState) -> Iterator[str]:
    for name in _KEPT_FILE.findall(ending.errors):
        if not Path(name).exists():
            yield f"there is no {name}"
    if ending.code != _FAILED or any(told in ending.errors for told in _IS_DONE):
        return
    if _is_done(action, place, ending):
        yield "said to have failed, but done"
    if _UNCHANGED.search(ending.errors) and after != before and not action.is_begun(place, ending):
        yield "said to be unchanged, but changed"


def _at_the_next_start(place: Place, program: FaultyProgram) -> Iterator[str]:
    start = program.run(place.home.path, ("log",), TMPDIR=str(place.folder))
    if start.code != 0:
        yield f"the next start fails: {start.errors}"
        return
    for finding in _examined(paths({}, str(place.home.path))):
        # Texts that the database refused are told of until the user has looked at them.
        if finding.state is State.WRONG and finding.subject != "rescue":
            yield finding.sentence
    yield from _left_behind(paths({}, str(place.home.path)))


def _left_behind(home: Paths) -> Iterator[str]:
    """Delete temporary files as the doctor would a day later; none of them may remain, and nothing else may go."""
    before, tomorrow = state_of(home.data), datetime.now(UTC) + timedelta(days=1)
    checks.delete(checks.temporary_files(home, tomorrow))
    if state_of(home.data) != before:
        yield "a file of the user is taken for a temporary one"
    for path in home.data.rglob(".*"):
        if not path.name.endswith(_LASTING):
            yield f"left behind: {path}"


def _examined(home: Paths) -> Iterator[Finding]:
    """Yield the findings of the doctor, without its start."""
    yield from check_log(home)
    yield from checks.check_leftovers(home, datetime.now(UTC))
    yield from check_home(home, Personas(home.personas, home.config_file), datetime.now(UTC))


def _is_done(action: Action, place: Place, ending: Ending) -> bool:
    # In the middle of a first start there are no tables yet, and before the first reply there is none.
    with suppress(sqlite3.Error, LookupError):
        return action.is_done(place, ending)
    return False
