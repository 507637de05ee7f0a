"""``/thread``: the persona's conversations."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from chorus_cli.commands.framework.arguments import NUMBER, TEXT
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Report, Table, Text
from chorus_cli.commands.framework.services import Services
from chorus_cli.commands.wording import local
from chorus_cli.core.log.messages import Status
from chorus_cli.core.text.phrases import shortened
from chorus_cli.storage.sqlite.log.thread_rows import Thread

GROUP: CommandGroup[Services] = CommandGroup(
    "thread", "Conversations with one persona, each with a context of its own.", aliases=("t",)
)

THREAD = replace(NUMBER, name="thread", help="a thread's number, such as 3 or #3")
MESSAGE = replace(NUMBER, name="message", help="a message's number, such as 12 or #12, as /search shows it")
TITLE = replace(TEXT, name="title", help="what the thread is about, in a few words")


@GROUP.command("", "list")
async def listing(services: Services) -> Table:
    """List the persona's threads; the current one is marked.

    Examples:
        /thread
    """
    here = services.focus.target().thread_id
    rows = [_row(thread, here=thread.id == here) for thread in await services.focus.threads()]
    return Table("", ("", "Thread", "Title", "Messages", "Last talked", "State"), tuple(rows))


@GROUP.command("switch", default=True)
async def switch(services: Services, thread: Annotated[int, THREAD]) -> Report:
    """Switch to another thread; the next run continues there too.

    Examples:
        /thread 3
        /t 3
    """
    await services.focus.turn_to_number(thread)
    return await _arrived(services)


@GROUP.command("new")
async def new(services: Services, title: Annotated[str, TITLE] = "") -> Report:
    """Open a new thread with an empty context, and switch to it.

    Examples:
        /thread new
        /thread new The trip to Rome
    """
    await services.focus.open_thread(shortened(title))
    return await _arrived(services)


@GROUP.command("fork")
async def fork(services: Services, message: Annotated[int | None, MESSAGE] = None) -> Report:
    """Open a new thread with the context of this one, and switch to it.

    With the number of a message, as /search shows it, the context is taken up to the end of that message's turn.
    What is said and done in either thread then does not change the other. /undo closes the new thread again.

    Examples:
        /thread fork
        /thread fork 12
    """
    forked = await services.log.journal.fork(services.focus.target(), message)
    await services.focus.turn_to_last_thread()
    return await _arrived(services, f"It begins as a {forked.describe()}. /undo closes it and goes back.")


async def _arrived(services: Services, *told: str) -> Report:
    here = services.focus.target().thread_id
    (thread,) = [each for each in await services.focus.threads() if each.id == here]
    about = f": {shortened(thread.title)}" if thread.title else ""
    return Report(tuple(map(Text, (f"Thread #{thread.number}{about}", *told, *await services.focus.notices()))))


def _row(thread: Thread, *, here: bool) -> tuple[str, ...]:
    states = {Status.STREAMING: "running", None: "empty"}
    state = states.get(thread.status, str(thread.status) if thread.status and thread.status.broke_off else "idle")
    return (
        "●" if here else "",
        f"#{thread.number}",
        shortened(thread.title),
        f"{thread.messages:,}",
        local(thread.last_spoken) if thread.last_spoken else "never",
        state,
    )
