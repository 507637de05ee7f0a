"""The event loop of the program."""

from __future__ import annotations

import asyncio
import errno
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_MOST_THREADS = 32
_LAST_WORK_SECONDS = 0.5


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Carry out ``work`` in a new event loop, as ``asyncio.run`` does, and return its result."""
    with asyncio.Runner(loop_factory=_EventLoop) as runner:
        return runner.run(work)


def leave_the_second_to_the_system(numbers: Iterable[int]) -> None:
    """Let a second signal of the same kind end the process at once, even while C code runs; this needs glibc."""
    import ctypes  # noqa: PLC0415 - it takes milliseconds

    library = ctypes.CDLL(None)
    if hasattr(library, "sysv_signal"):
        library.signal.restype = ctypes.c_void_p
        library.sysv_signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        for number in numbers:
            # Python's own handler is set again, but for one signal only; the next one gets the system's default.
            library.sysv_signal(number, library.signal(number, signal.SIG_DFL))


@contextmanager
def unseen_reported(report: Callable[[BaseException], object]) -> Iterator[None]:
    """Report errors that no caller gets; Python would print their tracebacks, perhaps with a key in them."""
    loop, in_threads, unraisable = asyncio.get_running_loop(), threading.excepthook, sys.unraisablehook
    in_loop = loop.get_exception_handler()

    def tell(error: BaseException | None) -> None:
        # A thread that ends itself, a pipe closed by its reader, and a closed terminal are not bugs.
        is_no_bug = isinstance(error, BrokenPipeError | SystemExit) or getattr(error, "errno", None) == errno.EIO
        if error is not None and not is_no_bug:
            report(error)

    loop.set_exception_handler(lambda _, seen: tell(seen.get("exception") or RuntimeError(seen["message"])))
    threading.excepthook = lambda seen: tell(seen.exc_value)
    sys.unraisablehook = lambda seen: tell(seen.exc_value)
    try:
        yield
    finally:
        loop.set_exception_handler(in_loop)
        threading.excepthook, sys.unraisablehook = in_threads, unraisable


class _EventLoop(asyncio.SelectorEventLoop):
    """A loop that waits at most half a second for threads at its end: the look-up of a host may take half a minute."""

    def __init__(self) -> None:
        super().__init__()
        # A cancelled look-up of a host keeps its thread busy, so other work needs further threads.
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="work")
        self.set_default_executor(self._threads)

    async def shutdown_default_executor(self, *_seconds: float | None) -> None:
        """Give work in threads half a second to end, and ignore the timeout that newer Pythons pass."""
        ending = threading.Thread(target=self._threads.shutdown, daemon=True)
        ending.start()
        ending.join(_LAST_WORK_SECONDS)
