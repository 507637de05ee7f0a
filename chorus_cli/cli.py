"""The outer command line: exit codes, signals, and the last catcher of errors."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

from chorus_cli.core.errors import ChorusError, UsageError
from chorus_cli.machine import bug_report, event_loop
from chorus_cli.machine.environment import with_umask
from chorus_cli.machine.paths import paths
from chorus_cli.storage.permissions import advised, refused
from chorus_cli.subcommands.exit_codes import BUG, DONE, FAILED, WRONG_ARGUMENTS
from chorus_cli.terminal.screen.output import refuse_closed_output, standard_error

Subcommand = Callable[[argparse.Namespace, Mapping[str, str]], Coroutine[None, None, int]]

_CHAT = "chat.chat"
"""The module and function, in `subcommands`, that carry out an empty command line."""
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_BEHIND_THE_START_SECONDS = 1.0


class _EndedBySignal(Exception):  # noqa: N818 - no error: the process was asked to end
    def __init__(self, number: int) -> None:
        self.number = number


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Carry out a command line and return the exit code."""
    mask = os.umask(0o077)
    chosen = argparse.Namespace(carried_out_by=_CHAT)
    try:
        if arguments:
            from chorus_cli.subcommands.command_line import parsed

            chosen = parsed(arguments)
        with bug_report.noted(partial(_log_file, chosen, environment), environment):
            code = event_loop.run(_reported(_work(chosen, with_umask(environment, mask)), chosen, environment))
            if code == DONE:
                refuse_closed_output()
            return code
    except ChorusError as error:
        return _say(advised(error), WRONG_ARGUMENTS if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except _EndedBySignal as ended:
        return 128 + ended.number
    except BrokenPipeError:
        # The reader has closed the pipe; writing the rest of the buffer must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except PermissionError as error:
        return _say(refused(error), FAILED)
    except Exception as error:  # noqa: BLE001 - the last catcher
        return _say(_bug_sentence(error, chosen, environment), BUG)


def _work(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Coroutine[None, None, int]:
    """Load only the module of the chosen subcommand, and return the coroutine of its work."""
    module, _, name = chosen.carried_out_by.partition(".")
    subcommand: Subcommand = getattr(import_module(f"chorus_cli.subcommands.{module}"), name)
    return subcommand(chosen, environment)


async def _reported(
    work: Coroutine[None, None, int], chosen: argparse.Namespace, environment: Mapping[str, str]
) -> int:
    with event_loop.unseen_reported(lambda error: _say(_bug_sentence(error, chosen, environment), BUG)):
        return await _until_signal(work)


async def _until_signal(work: Coroutine[None, None, int]) -> int:
    """Do ``work`` until a signal cancels it; an unfinished reply is kept. A second signal ends the process."""
    task = asyncio.ensure_future(work)
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    # Ignored signals stay ignored, as under nohup.
    heard = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, end, number)
    # A terminal that closes may send SIGHUP twice, so a second SIGHUP does not end the process.
    at_the_second = [number for number in heard if number != signal.SIGHUP]
    loop.call_later(_BEHIND_THE_START_SECONDS, event_loop.leave_the_second_to_the_system, at_the_second)
    code = DONE
    try:
        code = await task
    except (ChorusError, asyncio.CancelledError, KeyboardInterrupt) as error:
        if not received:
            raise
        if isinstance(error, ChorusError):
            _say(str(error), FAILED)
    if received:
        # Work that ends by itself while a signal arrives counts as ended by the signal.
        raise _EndedBySignal(received[0])
    return code


def _log_file(chosen: argparse.Namespace, environment: Mapping[str, str]) -> Path | None:
    """Return the file for tracebacks and warnings; ``None`` for a private chat, which they might quote."""
    return None if "private" in chosen else paths(environment, getattr(chosen, "home", None)).log_file


def _bug_sentence(error: BaseException, chosen: argparse.Namespace, environment: Mapping[str, str]) -> str:
    log_file = None
    # Without a home, no traceback can be kept.
    with suppress(ChorusError):
        log_file = _log_file(chosen, environment)
    return bug_report.report_bug(log_file, error, environment)


def _say(sentence: str, code: int) -> int:
    standard_error().error(sentence)
    return code
