"""Times that are typed after ``/context``: each kind of answer, and the persona's file afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.core.errors import ChorusError, CommandError, TimeSpanError
from chorus_cli.log.rules.acts import Window
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.world import World, built

# The clock stands at Thursday 2026-02-12 14:30, and the tests' time zone is UTC.
BEFORE = '{\n  // mine\n  "context_hours": 10,\n}\n'

# The time typed, its hours, and the moment they reach back to.
SET = {
    "/context 24h": (24, "Wed 2026-02-11 14:30"),
    "/context 2h 30m": (3, "Thu 2026-02-12 11:30"),
    '/context "3 days ago"': (72, "Mon 2026-02-09 14:30"),
    '/context "last monday"': (87, "Sun 2026-02-08 23:30"),
    "/context since friday": (159, "Thu 2026-02-05 23:30"),
    "/context add yesterday": (34, "Wed 2026-02-11 04:30"),
    "/context sub 4h": (6, "Thu 2026-02-12 08:30"),
    "/context since 9:00": (6, "Thu 2026-02-12 08:30"),
}

CLAMPED = {
    "/context 200h": (168, "200h is more than 168h (7 days)"),
    "/context add 1000h": (168, "1010h is more than 168h (7 days)"),
    "/context 20m": (1, "20m is less than 1h"),
    "/context sub 1000h": (1, "that would leave nothing"),
}

REFUSED = {
    "/context 0h": "'0h' is zero; write how far back to go, as in 24h.",
    "/context -5h": "'-5h' has a sign; write it without one, as in 5h.",
    "/context now": "'now' is the present; write how far back to go, as in 24h.",
    "/context 1,000h": "'1,000h' has a comma that may separate thousands or decimals; "
    "write it without one, as in 1000h or 1.5h.",
    "/context this evening": "'this evening' names a part of the day, which has no exact beginning; "
    "write the hour, as in yesterday 8pm.",
    "/context 9am EST": "'9am EST' names a time zone; write local time, as in monday 9am.",
    "/context 1 month": "'1 month' counts in months or years, which vary in length; count in days or weeks, as in 7d.",
    "/context may": "'may' names a month; write a date as in 2026-11-18, or count back in days, as in 7d.",
    "/context 1:30": "'1:30' may be a time of day or a length of time; write today 9:30 or 1h30.",
    "/context tomorrow": "'tomorrow' is in the future; write how far back to go, as in 24h.",
    "/context banana": "Cannot read 'banana' as a length of time or a moment; "
    "write it as in 24h, 2 days, 1h30, 3 days ago, yesterday, monday 9am or since friday.",
    f"/context {'9' * 50}h": f"'{'9' * 39}…' reaches back before the calendar begins; write less, as in 7d.",
    f"/context {'x' * 10_000}": f"'{'x' * 39}…' is too long for a time; write it as in 24h or 3 days ago.",
    '/context ""': "No time given; write how far back to go, as in 24h.",
    "/context a fortnite": "Cannot read 'a fortnite' as a length of time or a moment; "
    "did you mean 'a fortnight'? Or write it as in 24h or 3 days ago.",
    "/context sub soon": "Cannot read 'soon' as a length of time or a moment; "
    "write it as in 24h, 2 days, 1h30, 3 days ago, yesterday, monday 9am or since friday.",
}

INCOMPLETE = {
    "/context set": "/context set needs <time>. Usage: /context [set] <time>, for example: /context 24h",
    "/context set  ": "/context set needs <time>. Usage: /context [set] <time>, for example: /context 24h",
    "/context add": "/context add needs <time>. Usage: /context add <time>, for example: /context add 8h",
    # No time, but the beginning of a name.
    "/context a": "/context a is ambiguous: /context add or /context at?",
}


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    world = await built(tmp_path, store, clock, model, limit_tokens=10_000)
    world.configure(BEFORE)
    return world


def after(hours: int) -> str:
    return BEFORE.replace("10", str(hours))


@pytest.mark.parametrize("line", ["/context", "/context  ", "/CONTEXT"])
async def test_nothing_after_the_name_shows_the_window_and_changes_nothing(world: World, line: str) -> None:
    shown = await world.told(line)
    assert shown.startswith("Context window: 10h (default: 8h)\nMessages since Thu 2026-02-12 04:30 are in context.")
    assert world.settings_text() == BEFORE


@pytest.mark.parametrize(("line", "hours", "since"), [(line, *expected) for line, expected in SET.items()])
async def test_a_time_is_confirmed_with_hours_and_local_moment(world: World, line: str, hours: int, since: str) -> None:
    told = await world.told(line)
    rounded, _, confirmed = told.rpartition("is rounded to whole hours.\n")
    assert confirmed == f"Context window set to {hours}h\nMessages since {since} are in context."
    assert "\n" not in rounded
    assert world.settings_text() == after(hours)


async def test_a_number_alone_is_confirmed_as_hours(world: World) -> None:
    assert await world.told("/context set 8.5") == (
        "A number without a unit means hours.\n8h 30m is rounded to whole hours.\n"
        "Context window set to 9h\nMessages since Thu 2026-02-12 05:30 are in context."
    )
    assert world.settings_text() == after(9)


@pytest.mark.parametrize(("line", "hours", "reason"), [(line, *expected) for line, expected in CLAMPED.items()])
async def test_a_time_out_of_bounds_is_clamped_with_a_warning(world: World, line: str, hours: int, reason: str) -> None:
    since = "Thu 2026-02-05 14:30" if hours == 168 else "Thu 2026-02-12 13:30"
    assert await world.told(line) == (
        f"Warning: {reason}; using {hours}h\nContext window set to {hours}h\nMessages since {since} are in context."
    )
    assert world.settings_text() == after(hours)


@pytest.mark.parametrize(
    ("line", "sentence", "kind"),
    [
        *((line, sentence, TimeSpanError) for line, sentence in REFUSED.items()),
        *((line, sentence, CommandError) for line, sentence in INCOMPLETE.items()),
    ],
)
async def test_what_is_no_time_is_refused_and_changes_nothing(
    world: World, line: str, sentence: str, kind: type[ChorusError]
) -> None:
    with pytest.raises(kind) as refusal:
        await world.carry_out(line)
    assert str(refusal.value) == sentence
    assert world.settings_text() == BEFORE
    assert (await world.window.state()).hours == 10
    assert await world.journal.entries(world.current.target()) == []


@pytest.mark.parametrize("line", ["/context reset", "/context default", "/context set reset", "/context set Default "])
async def test_the_default_is_reached_back_to_by_its_words(world: World, line: str) -> None:
    assert (await world.told(line)).startswith("Context window reset to default (8h)\n")
    assert "context_hours" not in world.settings_text()
    by_hand, entry = await world.journal.entries(world.current.target())
    assert (await world.window.state()).hours == 8
    assert [by_hand.operation.act, entry.operation.act] == [Window(None, 10), Window(10, None)]
