"""Machines that share one log on a server: whose reply lives, what is said elsewhere, order, files and windows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from chorus_cli.attachments.files import attachments
from chorus_cli.attachments.rows import on_server
from chorus_cli.core.errors import PurgeError
from chorus_cli.framework.replies import plain
from chorus_cli.log.rows import input_rows, interrupted_replies, message_rows
from chorus_cli.log.rules.messages import MessageContent, Role, Status
from chorus_cli.log.rules.threads import Exchange
from chorus_cli.mcp.answers import result_of
from chorus_cli.mcp.rules.offers import Part
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.storage.file_lock import hold
from chorus_cli.storage.port import Connection
from chorus_cli.tools.service import BUILT_IN
from tests.attached_files import png
from tests.fakes import START, FakeClock
from tests.machines import Machine, await_end, await_listening, cut, machine, needs_a_server, stored_at
from tests.mcp.scripted_servers import ScriptedServers
from tests.storage.schemas import shared_log
from tests.turns.service.tool_talk import call, calls
from tests.world import Tools, words_come

pytestmark = needs_a_server


@pytest.fixture
async def laptop(tmp_path: Path, log: str) -> AsyncIterator[Machine]:
    async with machine(tmp_path / "laptop", log, "lap-top") as opened:
        yield opened


@pytest.fixture
async def desk(tmp_path: Path, log: str, laptop: Machine) -> AsyncIterator[Machine]:
    async with machine(tmp_path / "desk", log, "desk") as opened:
        await opened.world.current.turn_to_thread(laptop.world.current.thread_id)
        yield opened


def begun(speaker: Machine) -> asyncio.Event:
    """Let a machine begin a reply, which ends once the returned event is set."""
    end = asyncio.Event()
    speaker.world.model.enqueue(TextDelta("half "), end, TextDelta("whole"), ReplyEnd("stop"))
    return end


async def asks_and_ends(folder: Path, url: str, thread_id: int) -> None:
    """Let a machine store a question, and end before it has an answer."""
    storage = stored_at(folder, url, "gone")
    await storage.store.open()
    question = MessageContent(thread_id, Role.USER, "Lost", START)
    await storage.store.write(message_rows.open_turn, "chorus", question, "openai/test", storage.run)
    await storage.store.close()
    await_end(url, storage.run)


async def listening(url: str) -> None:
    await asyncio.to_thread(await_listening, url, 1)


async def heard(there: AsyncIterator[Exchange | str]) -> tuple[str, str, str]:
    """Return the next exchange, or else the line of an act with two empty texts."""
    async with asyncio.timeout(5):
        while not (found := await anext(there)):
            pass
    return (found, "", "") if isinstance(found, str) else (found.place, found.question, found.reply)


async def heard_through(there: AsyncIterator[Exchange | str], reply: str) -> list[str]:
    """Return the texts that are heard, up to a reply; a question and its reply may come as one exchange or as two."""
    texts: list[str] = []
    while reply not in texts:
        _, *said = await heard(there)
        texts += filter(None, said)
    return texts


class TestOwnership:
    async def test_a_reply_of_a_living_run_of_another_machine_stays_in_progress(
        self, laptop: Machine, desk: Machine
    ) -> None:
        end = begun(laptop)
        async with aclosing(laptop.world.conversation.answer(laptop.world.current.target(), "Hello")) as events:
            await words_come(events)
            now, is_alive = desk.world.clock.now(), desk.storage.is_alive
            found = await desk.storage.store.write(interrupted_replies.mark_interrupted, is_alive, now)
            assert (len(found.interrupted), len(found.in_progress)) == (0, 1)
            end.set()

    async def test_a_reply_of_an_ended_run_is_found_from_another_machine(
        self, tmp_path: Path, log: str, laptop: Machine
    ) -> None:
        await asks_and_ends(tmp_path / "gone", log, laptop.world.current.thread_id)
        now, is_alive = laptop.world.clock.now(), laptop.storage.is_alive
        found = await laptop.storage.store.write(interrupted_replies.mark_interrupted, is_alive, now)
        assert (len(found.interrupted), len(found.in_progress)) == (1, 0)

    async def test_a_run_holds_its_sign_again_once_the_cut_line_is_back(
        self, log: str, laptop: Machine, desk: Machine
    ) -> None:
        cut(log, listening=False)
        for each in (laptop, desk):
            await each.storage.store.read(message_rows.newer, 0, 0, ())

        def lives(_: Connection) -> tuple[bool, bool]:
            return desk.storage.is_alive(laptop.storage.run), desk.storage.is_alive("1-0@other")

        assert await desk.storage.store.read(lives) == (True, False)

    async def test_a_run_of_this_machine_lives_even_while_its_line_is_cut(
        self, tmp_path: Path, laptop: Machine
    ) -> None:
        other = "2-cd@lap.top"
        with hold(tmp_path / "laptop" / "run" / other):
            assert await laptop.storage.store.read(lambda _: laptop.storage.is_alive(other))
        assert not await laptop.storage.store.read(lambda _: laptop.storage.is_alive(other))


class TestNews:
    async def test_a_question_and_its_reply_are_heard_with_the_machine_and_are_in_the_next_request(
        self, log: str, laptop: Machine, desk: Machine
    ) -> None:
        async with aclosing(desk.elsewhere.heard()) as heard_there:
            hearing = asyncio.ensure_future(heard(heard_there))
            await listening(log)
            end = begun(laptop)
            saying = asyncio.ensure_future(laptop.world.say("Which way?"))
            assert await hearing == ("on lap-top", "Which way?", "")
            hearing = asyncio.ensure_future(heard(heard_there))
            await asyncio.sleep(0.1)
            assert not hearing.done()
            end.set()
            assert await hearing == ("on lap-top", "", "half whole")
            await saying
        await desk.world.say("And then?")
        assert [text for _, text in desk.world.asked()] == ["Which way?", "half whole", "And then?"]

    async def test_nothing_of_this_run_or_of_another_thread_is_heard(
        self, log: str, laptop: Machine, desk: Machine
    ) -> None:
        async with aclosing(desk.elsewhere.heard()) as heard_there:
            hearing = asyncio.ensure_future(heard(heard_there))
            await listening(log)
            await desk.world.say("Mine")
            await laptop.world.threads.new()
            await laptop.world.say("In another thread")
            await asyncio.sleep(0.2)
            assert not hearing.done()
            hearing.cancel()
            await asyncio.wait({hearing})

    async def test_what_was_said_while_the_line_was_cut_is_heard_once(
        self, log: str, laptop: Machine, desk: Machine
    ) -> None:
        async with aclosing(desk.elsewhere.heard()) as heard_there:
            hearing = asyncio.ensure_future(heard_through(heard_there, "ok"))
            await listening(log)
            await laptop.world.say("Before")
            assert await hearing == ["Before", "ok"]
            hearing = asyncio.ensure_future(heard_through(heard_there, "ok"))
            await asyncio.sleep(0.1)
            cut(log, listening=True)
            await laptop.world.say("Meanwhile")
            assert await hearing == ["Meanwhile", "ok"]

    async def test_a_retry_elsewhere_and_a_broken_reply_are_heard(
        self, tmp_path: Path, log: str, laptop: Machine, desk: Machine
    ) -> None:
        await desk.world.say("Mine")
        async with aclosing(desk.elsewhere.heard()) as heard_there:
            hearing = asyncio.ensure_future(heard(heard_there))
            await listening(log)
            laptop.world.model.say("better")
            [event async for event in laptop.world.conversation.retry(laptop.world.current.target())]
            assert await hearing == ("On lap-top: another reply to the last message", "", "")
            assert await heard(heard_there) == ("on lap-top", "", "better")
            await asks_and_ends(tmp_path / "gone", log, laptop.world.current.thread_id)
            assert await heard(heard_there) == ("on gone", "Lost", "")
            await laptop.world.say("Next")
            assert (await heard(heard_there))[0] == "on gone"

    async def test_acts_are_heard_by_their_names_and_in_their_place_among_messages(
        self, log: str, laptop: Machine, desk: Machine
    ) -> None:
        await laptop.world.say("First")
        async with aclosing(desk.elsewhere.heard()) as heard_there:
            hearing = asyncio.ensure_future(heard(heard_there))
            await listening(log)

            async def line(typed: str) -> str:
                await laptop.world.carry_out(typed)
                return (await heard(heard_there))[0]

            await laptop.world.carry_out("/undo")
            assert await hearing == ('Undone on lap-top: your message "First" and its reply', "", "")
            assert await line("/redo") == 'Redone on lap-top: your message "First" and its reply'
            assert await line("/pin 1") == "On lap-top: pinned #1"
            assert await line("/undo") == "Undone on lap-top: pinned #1"
            assert await line("/new") == "On lap-top: new conversation"
            assert await line("/context undo") == "Undone on lap-top: new conversation"
            # An act of this machine and a window of the other are not heard, and everything else in its order.
            await desk.world.carry_out("/pin 2")
            await laptop.world.carry_out("/context 24h")
            cut(log, listening=True)
            await laptop.world.say("Second")
            await laptop.world.carry_out("/undo")
            assert await heard_through(heard_there, "ok") == ["Second", "ok"]
            assert (await heard(heard_there))[0] == 'Undone on lap-top: your message "Second" and its reply'

    async def test_a_change_that_has_no_line_says_that_the_context_may_have_changed(
        self, log: str, laptop: Machine, desk: Machine
    ) -> None:
        async with aclosing(desk.elsewhere.heard()) as heard_there:
            assert await anext(heard_there) == ""
            await listening(log)
            await laptop.world.carry_out("/remember the key is green")
            async with asyncio.timeout(5):
                assert await anext(heard_there) == ""

    async def test_a_message_waits_for_a_reply_of_another_machine(self, laptop: Machine, desk: Machine) -> None:
        end = begun(laptop)
        first = asyncio.ensure_future(laptop.world.say("First"))
        await laptop.world.log_row_with_status(1, Status.STREAMING)
        second = asyncio.ensure_future(desk.world.say("Second"))
        await asyncio.sleep(0.3)
        assert not second.done()
        end.set()
        await asyncio.gather(first, second)
        assert [text for _, text in desk.world.asked()] == ["First", "half whole", "Second"]


class TestOrder:
    async def test_turns_of_two_machines_in_one_thread_interleave_whole(self, laptop: Machine, desk: Machine) -> None:
        async def talk(speaker: Machine, name: str) -> None:
            for number in range(50):
                await speaker.world.say(f"{name} {number}")

        await asyncio.gather(talk(laptop, "laptop"), talk(desk, "desk"))
        rows = await laptop.world.log()
        questions = [row.content for row in rows if row.role == "user"]
        assert sorted(questions) == sorted(f"{name} {number}" for name in ("laptop", "desk") for number in range(50))
        assert [row.role for row in rows] == ["user", "assistant"] * 100
        assert all(reply.turn_id == question.id for question, reply in zip(rows[::2], rows[1::2], strict=True))

    async def test_clocks_that_differ_by_ten_minutes_change_no_order(
        self, tmp_path: Path, log: str, laptop: Machine
    ) -> None:
        ahead = FakeClock(START + timedelta(minutes=10))
        async with machine(tmp_path / "ahead", log, "ahead", ahead) as other:
            await other.world.current.turn_to_thread(laptop.world.current.thread_id)
            await other.world.say("From the future")
            await laptop.world.say("Now")
            await other.world.say("Last")
            assert [text for _, text in laptop.world.asked()] == ["From the future", "ok", "Now"]
            for each in (laptop, other):
                assert await each.world.seen() == ["From the future", "ok", "Now", "ok", "Last", "ok"]

    async def test_clocks_that_differ_by_ten_minutes_move_the_end_of_a_window_by_no_more(
        self, tmp_path: Path, log: str, laptop: Machine
    ) -> None:
        ahead = FakeClock(START + timedelta(minutes=10))
        async with machine(tmp_path / "ahead", log, "ahead", ahead) as other:
            await other.world.current.turn_to_thread(laptop.world.current.thread_id)
            for each in (laptop, other):
                await each.world.carry_out("/context 24h")
            await laptop.world.say("Now")
            await other.world.say("From the future")
            for passed, (of_laptop, of_other) in {
                timedelta(hours=23, minutes=49): (2, 2),
                timedelta(minutes=2): (2, 1),
                timedelta(minutes=10): (1, 0),
                timedelta(minutes=11): (0, 0),
            }.items():
                for each, turns in ((laptop, of_laptop), (other, of_other)):
                    each.world.clock.advance(passed)
                    assert await each.world.seen() == ["Now", "ok", "From the future", "ok"][4 - 2 * turns :]


class TestFiles:
    async def test_an_attachment_reaches_another_machine_with_the_message(self, laptop: Machine, desk: Machine) -> None:
        data = png()
        attachment = await laptop.world.services.attachments.of_bytes("photo.png", data)
        target = laptop.world.current.target()
        [event async for event in laptop.world.conversation.answer(target, "Look", (attachment,))]
        folder = desk.world.folder / "attachments"
        assert not attachments.path_of(folder, attachment.sha256).exists()
        assert await desk.world.notices("What was on it?") == []
        assert attachments.AttachmentFolder(folder).read(attachment.sha256) == data

    async def test_a_picture_of_a_tools_result_reaches_another_machine(
        self, tmp_path: Path, log: str, desk: Machine
    ) -> None:
        servers = ScriptedServers(result=result_of([Part("", png(), "image/png")], server="time", tool="now"))
        async with machine(tmp_path / "tower", log, "tower", tools=Tools(BUILT_IN, servers)) as tower:
            tower.world.configure('{"mcpServers": {"time": {"command": "time", "trust": true}}}')
            await tower.world.current.turn_to_thread(desk.world.current.thread_id)
            calls(tower.world, call("time__now", {}))
            await tower.world.say("Look")
        assert await desk.world.notices("What was on it?") == []
        digest = sha256(png()).hexdigest()
        assert attachments.AttachmentFolder(desk.world.folder / "attachments").read(digest) == png()

    async def test_a_purge_finds_and_deletes_an_attachment_that_only_the_server_has(
        self, laptop: Machine, desk: Machine
    ) -> None:
        attachment = await laptop.world.services.attachments.of_bytes("words.txt", b"the canary sings")
        target = laptop.world.current.target()
        [event async for event in laptop.world.conversation.answer(target, "Read", (attachment,))]
        question = await desk.world.asked_back("/purge search canary")
        await question.confirmed()
        assert await desk.world.services.attachments.missing([attachment]) == {attachment}

    async def test_a_purge_leaves_no_word_in_the_files_of_the_server(self, log: str, laptop: Machine) -> None:
        for _ in range(20):
            await laptop.world.say("the xyzzyplugh sings")
        with psycopg.connect(log, autocommit=True) as server:
            server.execute("ANALYZE messages")
            found = "SELECT count(*) FROM pg_stats WHERE most_common_vals::text LIKE '%xyzzyplugh%'"
            assert server.execute(found).fetchone() == (1,)
            await (await laptop.world.asked_back("/purge search xyzzyplugh")).confirmed()
            assert server.execute(found).fetchone() == (0,)
            server.execute("CHECKPOINT")
            listed = server.execute(
                "SELECT relname, current_setting('data_directory') || '/' || pg_relation_filepath(oid) FROM pg_class "
                "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"
            ).fetchall()
        files = {name: Path(path) for name, path in listed}
        if not os.access(files["messages"], os.R_OK):
            pytest.skip("the files of the server cannot be read here")
        assert files["messages"].stat().st_size
        assert not [name for name, path in files.items() if b"xyzzyplugh" in path.read_bytes()]

    async def test_a_purge_is_complete_once_no_other_program_sees_what_it_overwrote(
        self, log: str, laptop: Machine
    ) -> None:
        await laptop.world.say("the xyzzyplugh sings")
        question = await laptop.world.asked_back("/purge search xyzzyplugh")
        with psycopg.connect(log) as dump:
            dump.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            dump.execute("SELECT 1")
            with pytest.raises(PurgeError, match=r"not complete\. The server of the log .* The next start of"):
                await question.confirmed()
        assert await laptop.world.services.purging.finish()
        assert not await laptop.world.services.purging.finish()

    async def test_a_purge_names_what_other_machines_keep_and_takes_it_when_it_is_repeated_there(
        self, laptop: Machine, desk: Machine
    ) -> None:
        attachment = await laptop.world.services.attachments.of_bytes("words.txt", b"the canary sings")
        target = laptop.world.current.target()
        [event async for event in laptop.world.conversation.answer(target, "Read", (attachment,))]
        await desk.world.say("What was on it?")
        await desk.storage.store.write(input_rows.add, "chorus", "my canary", desk.world.clock.now())
        path = attachments.path_of(desk.world.folder / "attachments", attachment.sha256)

        def typed(connection: Connection) -> list[tuple[str]]:
            return connection.execute("SELECT content FROM input_history").fetchall()

        told: list[str] = []
        with laptop.world.services.notifier.heard_by(told.append, told.append):
            await (await laptop.world.asked_back("/purge search canary")).confirmed()
        assert [each for each in told if "Other machines may have copies" in each]
        assert path.exists()
        assert await desk.storage.store.read(typed) == [("my canary",)]
        await (await desk.world.asked_back("/purge search canary")).confirmed()
        assert not path.exists()
        assert await desk.storage.store.read(typed) == []

    async def test_an_export_and_an_import_take_attachments_from_and_to_the_server(
        self, tmp_path: Path, laptop: Machine, desk: Machine
    ) -> None:
        attachment = await laptop.world.services.attachments.of_bytes("words.txt", b"the canary sings")
        target = laptop.world.current.target()
        [event async for event in laptop.world.conversation.answer(target, "Read", (attachment,))]
        exported = await desk.world.services.imports.export_all(tmp_path / "export", "jsonl", None, print)
        assert (exported.attachments, exported.missing) == (1, 0)
        with shared_log() as other:
            async with machine(tmp_path / "third", other, "third") as third:
                assert "1 attachment" in await third.world.told(f"/import {tmp_path / 'export'}")
                assert await third.storage.store.read(on_server, attachment.sha256) == b"the canary sings"


class TestSessions:
    async def test_a_session_saved_on_one_machine_is_restored_on_another_as_there(
        self, laptop: Machine, desk: Machine
    ) -> None:
        await laptop.world.say("To Rome")
        await laptop.world.told("/thread fork")
        await laptop.world.say("By train")
        laptop.world.model.say("A trip.")
        assert "Saved session" in await laptop.world.told("/context save Trip to Rome")
        await desk.world.told("/new")
        assert await desk.world.seen() == []
        assert "A trip." in await desk.world.told("/context history")
        restored = await desk.world.told("/context restore trip to rome")
        assert await desk.world.seen() == ["To Rome", "ok", "By train", "ok"]
        [here], [there] = (
            [*(each.world.folder / "personas" / "chorus" / "sessions").glob("*.json")] for each in (desk, laptop)
        )
        assert (here.name, here.read_bytes()) == (there.name, there.read_bytes())
        await desk.world.told("/context undo")
        assert await laptop.world.told("/context restore trip to rome") == restored.rpartition("\n")[0]


class TestWindows:
    async def test_a_window_binds_only_on_the_machine_whose_settings_have_it(
        self, laptop: Machine, desk: Machine
    ) -> None:
        await laptop.world.say("Hello")
        await laptop.world.carry_out("/context 24h")
        assert laptop.world.current.target().persona.settings.context_hours == 24
        assert desk.world.current.target().persona.settings.context_hours != 24
        assert "window default → 24h" in "".join(await laptop.world.steps())
        assert "window" not in "".join(await desk.world.steps())
        before = desk.world.settings_text() if desk.world.personas.settings_path("chorus").exists() else ""
        assert "Hello" in await desk.world.told("/undo")
        after = desk.world.settings_text() if desk.world.personas.settings_path("chorus").exists() else ""
        assert before == after


async def test_a_persona_that_another_machine_has_too_keeps_its_talk_and_memory(laptop: Machine, desk: Machine) -> None:
    await laptop.world.told("/persona new Gandalf")
    await laptop.world.say("I wear grey")
    await laptop.world.told("/remember Gandalf wears grey")
    told = await desk.world.told("/persona new Gandalf")
    assert "It continues with the messages and memory of gandalf at 127.0.0.1" in told
    for each in (laptop, desk):
        assert "Gandalf wears grey" in await each.world.told("/memory list")
        assert "I wear grey" in await each.world.seen()


async def test_undo_asks_before_it_takes_back_what_another_machine_did(laptop: Machine, desk: Machine) -> None:
    await laptop.world.say("One")
    await desk.world.told("/new")
    question = await laptop.world.asked_back("/undo")
    assert question.text == "The newest action in this thread was made in another Chorus.\nUndo new conversation?"
    assert plain(question.declined) == "Nothing was undone."
    assert await desk.world.told("/undo") == "Undone: new conversation"
    assert await laptop.world.told("/undo") == 'Undone: your message "One" and its reply'
