"""A user with several threads at work: everything is done through the services, with a real database and real files."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from chorus_cli.context.rules.plan import BROKEN_OFF, LEAD
from chorus_cli.core.errors import ChorusError
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.replies import Question, Reply, plain
from chorus_cli.log.rows import interrupted_replies
from chorus_cli.log.rules.messages import Message, Role, Status
from chorus_cli.models.rules.events import ModelEvent, ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest
from chorus_cli.personas.rules.persona import Target
from chorus_cli.storage.port import Connection
from chorus_cli.storage.store import Store
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.fakes import FakeClock, ScriptedModel
from tests.storage.database import quick
from tests.storage.schemas import give_back
from tests.threads.service.naive_threads import Shown
from tests.world import World, built

T = TypeVar("T")

_LIMIT_TOKENS = 100_000
_BLOCKS = re.compile(r"(?s)(--- context starts here ---\n\n)(.*)(--- end of messages ---)")


@dataclass
class GatedModel(ScriptedModel):
    """Answers each question with ``half of it`` at once and the rest when its gate is opened, anything else at once.

    ``asked`` holds by its question the words of the messages that were sent before.
    """

    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    asked: dict[str, list[str]] = field(default_factory=dict)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        *before, question = [_words(message.content) for message in request.messages[1:] if message.content != LEAD]
        if question in self.gates:
            self.asked[question] = before
            yield TextDelta(half(question))
            await self.gates[question].wait()
            yield TextDelta(REST)
        else:
            yield TextDelta("A summary.")
        yield ReplyEnd("stop")


REST = " and the rest"


def half(question: str) -> str:
    return f"half of {question}"


def whole(question: str) -> str:
    return half(question) + REST


class ThreadsStory:
    """A world of its own, which can be left, killed and begun again, and an event loop to run it in."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._folders = [Path(tempfile.mkdtemp(prefix="chorus-threads-"))]
        self.clock, self.model = FakeClock(), GatedModel()
        self.run(self._open())

    def end(self) -> None:
        self.run(self._close())
        self._runner.close()
        give_back(self._folders[-1] / "chorus.db")
        for folder in self._folders:
            shutil.rmtree(folder)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run something, and wait until every reply in progress has come to its gate."""
        return self._runner.run(self._quiet_after(work))

    # Coming and going

    async def _open(self) -> None:
        self.store = Store(quick(self._folders[-1] / "chorus.db"))
        await self.store.open()
        self.world: World = await built(self._folders[-1], self.store, self.clock, self.model, _LIMIT_TOKENS)
        # Its sleeps would let the fake clock run away.
        await self.world.services.idle_timer.close()

    async def _close(self) -> None:
        await self.world.services.replies.close()
        await self.store.close()

    def reopen(self) -> None:
        """Leave, and begin again."""
        self.run(self._close())
        self.run(self._open())

    def kill(self) -> None:
        """Go on with the files as a process that was killed now leaves them, and mend them as a start does."""
        self.run(self._killed())

    async def _killed(self) -> None:
        left = Path(tempfile.mkdtemp(prefix="chorus-threads-"))
        shutil.copytree(self._folders[-1], left, dirs_exist_ok=True)
        await self._close()
        self._folders.append(left)
        await self._open()
        await self.store.write(_die)
        await self.store.write(interrupted_replies.mark_interrupted, lambda run: run != "dead", self.clock.now())

    def offered(self) -> list[str]:
        """Take what a start offers of messages that were not sent, and return it."""
        return self.run(self._offered())

    async def _offered(self) -> list[str]:
        left = await self.store.read(outbox_rows.left_by_ended, lambda _run: False)
        await self.store.write(outbox_rows.drop, [each.id for each in left])
        return [each.text.content for each in left]

    # What is said and done

    def send(self, number: int, text: str) -> None:
        self.model.gates[text] = asyncio.Event()
        self.run(self.world.services.replies.send(self.target(number), text))

    def let_finish(self, number: int) -> None:
        turn = self._running(number)
        self.model.gates[turn.text].set()
        self.run(turn.over())

    def stop(self, number: int) -> None:
        self.run(self._running(number).stop())

    def told(self, line: str) -> str:
        """Carry out a command, say yes if it asks, and return what the user reads in the end."""
        return self.run(self._told(line))

    async def _told(self, line: str) -> str:
        services = self.world.services
        try:
            answer = await resolve(services.registry, line, self.clock.now()).run(services)
            if isinstance(answer, Question):
                answer = await answer.confirmed()
        except ChorusError as error:
            return str(error)
        return plain(answer) if isinstance(answer, Reply) else ""

    def edited(self, order: Sequence[tuple[str, str]]) -> str:
        """Edit the context: the messages with these words stay, in this order, each with its second words instead."""

        def edit(path: Path) -> None:
            found = _BLOCKS.search(path.read_text())
            assert found
            blocks = {block.partition(": ")[2]: block for block in found[2].split("\n\n") if block}
            kept = [blocks[old].replace(old, new) + "\n\n" for old, new in order]
            path.write_text(_BLOCKS.sub(lambda match: match[1] + "".join(kept) + match[3], path.read_text()))

        self.world.editor.enqueue(edit)
        return self.told("/context edit")

    # What is there

    def target(self, number: int) -> Target:
        # The threads of the only persona are numbered as the rows are.
        return self.world.current.target()._replace(thread_id=number, thread_number=number)

    def views(self, numbers: Iterable[int]) -> dict[int, Sequence[Message]]:
        """Return the messages in context in threads."""
        return self.run(self._views([*map(self.target, numbers)]))

    async def _views(self, targets: Iterable[Target]) -> dict[int, Sequence[Message]]:
        context, now = self.world.context, self.clock.now()
        return {each.thread_number: (await context.snapshot(each, now)).view.messages for each in targets}

    def newest_reply(self, number: int) -> str:
        """Return what is stored of the newest reply in a thread."""
        rows = self.run(self.world.log())
        own = [row for row in rows if row.thread_id == number and row.introduced_by is None]
        return next(row.content for row in reversed(own) if row.role is Role.ASSISTANT)

    def drafts(self) -> list[str]:
        left = self.run(self.store.read(outbox_rows.left_by_ended, lambda _run: False))
        return sorted(each.text.content for each in left)

    def _running(self, number: int) -> RunningTurn:
        [turn] = [turn for turn in self.world.services.replies.running if turn.target.thread_number == number]
        return turn

    async def _quiet_after(self, work: Awaitable[T]) -> T:
        result = await work
        while not all(map(_is_at_gate, self.world.services.replies.running)):  # noqa: ASYNC110 - a turn has no such event
            await asyncio.sleep(0.0002)
        return result


def shown(row: Message) -> Shown:
    """Return a row as the model has it; how much of an unfinished reply is written is a matter of time."""
    content = row.content if row.status is Status.COMPLETE else ""
    return row.role is Role.USER, content, row.status


def _is_at_gate(turn: RunningTurn) -> bool:
    return any(isinstance(event, TextDelta) for event in turn.events)


def _words(content: str) -> str:
    """Return a message as it was said, without its preamble and the mark of a reply that broke off."""
    return content.removesuffix(f"\n{BROKEN_OFF}").rpartition("\n\n")[2]


def _die(connection: Connection) -> None:
    connection.execute("UPDATE messages SET run = 'dead' WHERE status = 'streaming'")
