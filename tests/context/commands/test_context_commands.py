"""``/context`` with a time, ``clear`` and ``save``: their answers and effects, on the disk too."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from chorus_cli.core.errors import ChorusError, CommandError, SessionError, TimeSpanError
from chorus_cli.framework.replies import plain
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Clear, Window
from chorus_cli.log.rules.operations import Operation
from chorus_cli.sessions import rows as session_rows
from tests.sessions.service.saved_sessions import SHIPPED, count, file_of, folder, restore, save_idle
from tests.world import World

SAVE = "/context save Auth refactor"


@pytest.fixture
async def talk(world: World) -> World:
    """One turn, ten minutes ago."""
    await world.say("Hello")
    world.clock.advance(timedelta(minutes=10))
    return world


async def journal(world: World) -> list[Operation]:
    return await world.store.read(operation_rows.all_of, "chorus", 1)


async def saved(world: World, line: str = SAVE, summary: str = "It is done.") -> str:
    world.model.say(summary)
    return await world.told(line)


# Clearing


async def test_context_clear_command_calls_clear(talk: World) -> None:
    assert await talk.told("/context clear") == "--- New conversation ---"
    assert [operation.act.kind for operation in await journal(talk)] == [Clear.kind]


async def test_context_clear_command_advances_clear_time(talk: World) -> None:
    for _ in range(2):
        talk.clock.advance(timedelta(minutes=5))
        await talk.told("/context clear")
        assert (await journal(talk))[-1].created_at == talk.clock.now()


async def test_clear_context_empties_messages(talk: World) -> None:
    assert await talk.seen() == ["Hello", "ok"]
    await talk.told("/context clear")
    assert await talk.seen() == []
    await talk.say("Afresh")
    assert talk.asked() == [("user", "Afresh")]


async def test_clear_context_does_not_save(talk: World) -> None:
    requests = len(talk.model.requests)
    await talk.told("/context clear")
    assert await count(talk, "sessions") == 0
    assert not folder(talk).exists()
    assert len(talk.model.requests) == requests


# Saving


async def test_context_save_command_calls_session_manager(talk: World) -> None:
    assert (await saved(talk)).startswith(f"Saved session {SHIPPED}: ")
    (row,) = (await talk.sessions.listing("chorus")).rows
    assert row.session_id == SHIPPED


async def test_save_creates_session_json_file(talk: World) -> None:
    await saved(talk)
    assert {"session_id", "timestamp", "description", "summary", "message_count", "messages"} <= set(file_of(talk))
    assert file_of(talk)["session_id"] == SHIPPED


async def test_save_stores_metadata_in_sqlite(talk: World) -> None:
    await saved(talk)
    (row,) = await talk.store.read(session_rows.of, "chorus")
    assert (row.session_id, row.timestamp, row.message_count) == (SHIPPED, talk.clock.now(), 2)
    assert (row.description, row.summary) == ("Auth refactor", "It is done.")


async def test_save_generates_summary(talk: World) -> None:
    assert (await saved(talk, summary="They met.")).splitlines()[1:] == ["They met."]
    assert "Human: Hello" in talk.model.requests[-1].messages[-1].content
    assert file_of(talk)["summary"] == "They met."


@pytest.mark.parametrize("line", [SAVE, "/context save", "/context save !!!"])
async def test_save_filename_format(talk: World, line: str) -> None:
    await saved(talk, line)
    (path,) = folder(talk).iterdir()
    assert re.fullmatch(r"2026-02-12_(auth-refactor|[0-9a-f]{6})\.json", path.name)


async def test_save_with_custom_description(talk: World) -> None:
    await saved(talk, "/context save  Before the Big change ")
    (row,) = (await talk.sessions.listing("chorus")).rows
    assert row.description == "Before the Big change"


# Saved messages


async def test_list_sessions_returns_all_snapshots(talk: World) -> None:
    """Saved by command or by a silence, before a clear or after it."""
    await saved(talk)
    await talk.told("/context clear")
    await talk.say("Afresh")
    talk.clock.advance(timedelta(minutes=1))
    await save_idle(talk)
    assert [row.description for row in (await talk.sessions.listing("chorus")).rows] == ["Afresh", "Auth refactor"]


async def test_list_sessions_includes_summary(talk: World) -> None:
    await saved(talk, summary="They met.")
    assert "They met." in await talk.told("/context history")


async def test_restore_loads_saved_messages(talk: World) -> None:
    await saved(talk)
    await talk.told("/context clear")
    await talk.told("/context restore 2026-02-12")
    await talk.say("And now?")
    assert [content for _, content in talk.asked()][:2] == ["Hello", "ok"]


async def test_restore_nonexistent_id_raises(talk: World) -> None:
    await saved(talk)
    with pytest.raises(SessionError, match="chorus has no session 'b0a7e0d4'"):
        await restore(talk, "b0a7e0d4")
    assert await talk.seen() == ["Hello", "ok"]
    assert await journal(talk) == []


# Times: each kind of answer, and the persona's file afterwards

# The clock stands at Thursday 2026-02-12 14:30, and the tests' time zone is UTC.
BEFORE = '{\n  // mine\n  "context_hours": 10,\n}\n'

# The time typed, its hours, and the moment they reach back to.
SET = {
    "/context 24h": (24, "Wed 2026-02-11 14:30"),
    '/context "3 days ago"': (72, "Mon 2026-02-09 14:30"),
    "/context since friday": (159, "Thu 2026-02-05 23:30"),
    "/context add yesterday": (34, "Wed 2026-02-11 04:30"),
    "/context -4h": (6, "Thu 2026-02-12 08:30"),
    "/context +half a day": (22, "Wed 2026-02-11 16:30"),
}

CLAMPED = {
    "/context +1000h": (168, "1010h is more than 168h (7 days); using 168h (/context all has no cutoff)"),
    "/context 20m": (1, "20m is less than 1h; using 1h"),
    "/context sub 1000h": (1, "that would leave nothing; using 1h"),
}

REFUSED = {
    "/context set -5h": "'-5h' begins with + or -, which only /context takes, as in /context -5h; write 5h here.",
    "/context +-5h": "'-5h' begins with + or -, which only /context takes, as in /context -5h; write 5h here.",
    "/context tomorrow ?": "'tomorrow' is in the future; write how far back to go, as in 24h.",
    '/context ""': "No time given; write how far back to go, as in 24h.",
    "/context sub soon": "Cannot read 'soon' as a length of time or a moment; "
    "write it as in 24h, 2 days, 1h30, 3 days ago, yesterday, monday 9am or since friday.",
}


INCOMPLETE = {
    "/context set  ": "/context needs <time>, for example: /context 24h",
    "/context add": "/context add needs <time>, for example: /context +8h",
    "/context +": "/context add needs <time>, for example: /context +8h",
    # No time, but the beginning of a name.
    "/context a": "/context a is ambiguous: /context add or /context at?",
}


@pytest.fixture
def at_ten(world: World) -> World:
    """A world whose persona has a window of ten hours, between a comment and a comma."""
    world.configure(BEFORE)
    return world


def after(hours: int) -> str:
    return BEFORE.replace("10", str(hours))


@pytest.mark.parametrize("line", ["/context", "/context  ", "/CONTEXT"])
async def test_nothing_after_the_name_shows_the_window_and_changes_nothing(at_ten: World, line: str) -> None:
    shown = await at_ten.told(line)
    assert shown.startswith("Context window: 10h (default: 8h)\nMessages since Thu 2026-02-12 04:30 are in context.")
    assert at_ten.settings_text() == BEFORE


@pytest.mark.parametrize(("line", "hours", "since"), [(line, *expected) for line, expected in SET.items()])
async def test_a_time_is_confirmed_with_hours_and_local_moment(
    at_ten: World, line: str, hours: int, since: str
) -> None:
    confirmed = f"Context window set to {hours}h\nMessages since {since} are in context."
    assert await at_ten.told(line) == confirmed
    assert at_ten.settings_text() == after(hours)


@pytest.mark.parametrize("line", ["/context 10h", "/context sub 20m", "/context add 20m"])
async def test_a_change_that_rounds_to_the_present_window_says_so(at_ten: World, line: str) -> None:
    assert "\nThe context window is 10h already; nothing was changed.\n" in f"\n{await at_ten.told(line)}"
    assert at_ten.settings_text() == BEFORE
    at_ten.configure("{}")
    assert "The context window is 8h already" in await at_ten.told("/context sub 20m")
    assert (at_ten.settings_text(), await at_ten.journal.entries(at_ten.current.target())) == ("{}", [])


async def test_a_number_alone_is_confirmed_as_hours(at_ten: World) -> None:
    for line, told in (("8.5?", "With 9h"), ("+8?", "With 18h"), ("-1", "Context window set to 9h")):
        assert (await at_ten.told(f"/context {line}")).startswith(f"A number without a unit means hours.\n{told}")
    at_ten.configure(BEFORE)
    assert await at_ten.told("/context set 8.5") == (
        "A number without a unit means hours.\n"
        "Context window set to 9h\nMessages since Thu 2026-02-12 05:30 are in context."
    )
    assert at_ten.settings_text() == after(9)


async def test_a_window_of_all_has_no_cutoff_but_the_boundary(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(days=400))
    await world.say("Two")
    preview = await world.told("/context all?")
    assert "With all:" in preview
    assert "2 messages, ~" in preview
    assert "would be added" in preview
    told = (await world.told("/context all")).splitlines()
    assert told[:2] == ["Context window set to all", "Messages of any age are in context."]
    assert re.fullmatch(r"The next request has ~\d+ tokens and costs about \$0\.04\.", told[2])
    assert '"context_hours": "all"' in world.settings_text()
    assert await world.seen() == ["One", "ok", "Two", "ok"]
    assert "Context window: all (default: 8h)\nMessages of any age are in context." in await world.told("/context")
    assert "4 of any age" in await world.told("/why")
    assert await world.told("/context add 8h") == (
        "The window is all, which has no length to change. Set one, as in /context 24h."
    )
    world.clock.advance(timedelta(days=400))
    assert await world.current.notices() == ()
    assert "Saved session" in await world.told("/context save")
    await world.told("/new")
    assert await world.seen() == []
    assert await world.told("/context undo 1") == "Undone: window default → all; it is the default again."


@pytest.mark.parametrize("line", ["/context all", "/set context_hours all"])
async def test_a_window_of_all_beyond_the_days_budget_is_asked_about(world: World, line: str) -> None:
    await world.say("One " * 100)
    world.configure('{"budget": 0.01}')
    question = await world.asked_back(line)
    assert question.text.endswith("With all in context the next request costs about $0.13. Set the window to all?")
    assert question.declined.text == "The window is unchanged."
    assert world.settings_text() == '{"budget": 0.01}'
    assert "Context window set to all" in plain(await question.confirmed())


@pytest.mark.parametrize(("line", "hours", "reason"), [(line, *expected) for line, expected in CLAMPED.items()])
async def test_a_time_out_of_bounds_is_clamped_with_a_warning(
    at_ten: World, line: str, hours: int, reason: str
) -> None:
    since = "Thu 2026-02-05 14:30" if hours == 168 else "Thu 2026-02-12 13:30"
    assert await at_ten.told(line) == (
        f"Warning: {reason}\nContext window set to {hours}h\nMessages since {since} are in context."
    )
    assert at_ten.settings_text() == after(hours)


@pytest.mark.parametrize(
    ("line", "sentence", "kind"),
    [
        *((line, sentence, TimeSpanError) for line, sentence in REFUSED.items()),
        *((line, sentence, CommandError) for line, sentence in INCOMPLETE.items()),
    ],
)
async def test_what_is_no_time_is_refused_and_changes_nothing(
    at_ten: World, line: str, sentence: str, kind: type[ChorusError]
) -> None:
    with pytest.raises(kind) as refusal:
        await at_ten.carry_out(line)
    assert str(refusal.value) == sentence
    assert at_ten.settings_text() == BEFORE
    assert at_ten.current.target().persona.settings.context_hours == 10
    assert await at_ten.journal.entries(at_ten.current.target()) == []


@pytest.mark.parametrize("line", ["/context default?", "/context Reset ?", "/context all?x", "/context ?default"])
async def test_a_question_mark_changes_no_window(at_ten: World, line: str) -> None:
    is_preview = "With 8h" in await at_ten.told(line)
    assert is_preview is line.endswith("?")
    assert at_ten.settings_text() == BEFORE


@pytest.mark.parametrize("line", ["/context reset", "/context default", "/context set reset", "/context set Default "])
async def test_the_default_is_reached_back_to_by_its_words(at_ten: World, line: str) -> None:
    assert (await at_ten.told(line)).startswith("Context window reset to default (8h)\n")
    assert "context_hours" not in at_ten.settings_text()
    by_hand, entry = await at_ten.journal.entries(at_ten.current.target())
    assert at_ten.current.target().persona.settings.context_hours == 8
    assert [by_hand.operation.act, entry.operation.act] == [Window(None, 10), Window(10, None)]


async def test_the_memory_items_that_are_not_sent_are_named_by_their_numbers(world: World) -> None:
    for number in range(1, 8):
        await world.told(f"/remember fact {number}")
    world.clock.advance(timedelta(days=1))
    await world.say("Hello")
    told = " ".join((await world.told("/context")).split())
    assert "7 items: #7, #6, #5, #4, #3 and 2 more not sent; WARM" in told
