"""The event loop of the program."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")

    # Its type differs between versions of the library's stubs.
    _Found = list[Any]


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Carry out ``work`` in a loop of its own, as ``asyncio.run`` does, and return its result."""
    with asyncio.Runner(loop_factory=_EventLoop) as runner:
        return runner.run(work)


class _EventLoop(asyncio.SelectorEventLoop):
    """A loop that looks up host names in daemon threads.

    Without a network a look-up may take half a minute, and the end of the program would wait for one of an executor.
    """

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - asyncio has named it
        proto: int = 0,
        flags: int = 0,
    ) -> _Found:
        """Return the addresses of a host.

        Raises:
            OSError: the name is unknown, or cannot be looked up.
        """
        found: Future[_Found] = Future()
        # From here on the look-up cannot be cancelled, only the wait for it.
        found.set_running_or_notify_cancel()

        def look_up() -> None:
            try:
                found.set_result(socket.getaddrinfo(host, port, family, type, proto, flags))
            except Exception as error:  # noqa: BLE001 - the awaiting caller gets it
                found.set_exception(error)

        threading.Thread(target=look_up, name="look-up", daemon=True).start()
        return await asyncio.wrap_future(found)
