"""Finding a session's messages in the log: equal ones, foreign threads, turns, tools."""

from __future__ import annotations

from datetime import timedelta

from chorus_cli.log.rules.messages import Message, MessageContent, Role, content_of
from chorus_cli.sessions.rules.format import SavedThread, Session
from chorus_cli.sessions.rules.matching import known_threads, members
from tests.fakes import START


def row(id_: int, content: str, role: Role = Role.USER, thread: int = 1, turn: int | None = None) -> Message:
    return Message(id_, "chorus", thread, turn or id_, role, content, START + timedelta(seconds=id_))


def session_of(*messages: MessageContent) -> Session:
    threads = tuple(SavedThread(id_) for id_ in dict.fromkeys(message.thread_id for message in messages))
    return Session("id", "chorus", START, "", "", 0, START, START, threads[0].id, threads, messages)


ROWS = [row(1, "Hello"), row(2, "Hi", Role.ASSISTANT, turn=1), row(3, "Bye"), row(4, "Bye!", Role.ASSISTANT, turn=3)]


def test_messages_that_are_in_the_log_are_named_by_their_ids_in_the_sessions_order() -> None:
    session = session_of(*map(content_of, [ROWS[2], ROWS[3], ROWS[0]]))
    assert known_threads(session, ROWS, {}) == {1: 1}
    assert members(session, ROWS, {1: 1}, {}) == (3, 4, 1)


def test_what_differs_in_role_time_or_content_is_new() -> None:
    message = content_of(ROWS[0])
    others = [
        message._replace(content="Hello!"),
        message._replace(role=Role.ASSISTANT),
        message._replace(timestamp=message.timestamp + timedelta(microseconds=1)),
    ]
    found = members(session_of(*others), ROWS, {1: 1}, {})
    assert all(isinstance(member, MessageContent) for member in found)


def test_of_equal_messages_the_kth_is_the_kth_and_none_is_taken_twice() -> None:
    twins = [row(id_, "ok", Role.ASSISTANT)._replace(timestamp=START) for id_ in (5, 6)]
    session = session_of(*(content_of(twins[0])._replace(turn_id=99) for _ in range(3)))
    first, second, third = members(session, twins, {1: 1}, {})
    assert (first, second) == (5, 6)
    assert isinstance(third, MessageContent)


def test_of_equal_messages_the_one_of_the_same_turn_is_meant() -> None:
    twins = [row(id_, "ok", Role.ASSISTANT, turn=turn)._replace(timestamp=START) for id_, turn in ((5, 4), (7, 6))]
    assert members(session_of(content_of(twins[1])), twins, {1: 1}, {}) == (7,)


def test_what_was_said_comes_before_what_an_operation_put_in() -> None:
    put_in = ROWS[0]._replace(id=7, introduced_by=1)
    session = session_of(content_of(ROWS[0])._replace(turn_id=50))
    assert members(session, [put_in, ROWS[0]._replace(id=9)], {1: 1}, {}) == (9,)


def test_a_thread_is_known_by_its_messages_whatever_its_number() -> None:
    elsewhere = [each._replace(thread_id=8) for each in ROWS]
    session = session_of(*map(content_of, ROWS))
    assert known_threads(session, elsewhere, {}) == {1: 8}
    assert known_threads(session, [*elsewhere, *ROWS], {}) == {1: 1}
    assert known_threads(session, [], {}) == {}


def test_two_threads_of_a_session_are_never_one_of_the_log() -> None:
    session = session_of(content_of(ROWS[0]), content_of(ROWS[0])._replace(thread_id=2))
    assert known_threads(session, ROWS, {}) == {1: 1}


def test_a_new_message_joins_the_turn_of_a_known_one_and_keeps_everything_else() -> None:
    call = MessageContent(1, Role.TOOL_USE, "", START, 1, tool_calls="[]", tool_call_id="c", preamble="p", model="m")
    _, added = members(session_of(content_of(ROWS[0]), call), ROWS, {1: 1}, {})
    assert added == MessageContent(
        1, Role.TOOL_USE, "", START, 1, preamble="p", tool_calls="[]", tool_call_id="c", model="m"
    )


def test_messages_of_an_unknown_turn_leave_it_to_the_log_to_make_one() -> None:
    foreign = session_of(
        MessageContent(5, Role.USER, "a", START, 71), MessageContent(5, Role.ASSISTANT, "b", START, 71)
    )
    new = [each for each in members(foreign, [], {5: 9}, {}) if isinstance(each, MessageContent)]
    assert [each.turn_id for each in new] == [None, None]
