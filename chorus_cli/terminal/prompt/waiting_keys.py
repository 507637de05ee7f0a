"""Keys that were typed between a prompt and what follows it, or while something else than a reply is at work."""

from __future__ import annotations

import select
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.keys import Keys

from chorus_cli.terminal.prompt.keys import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding.key_processor import KeyPress

_MOST_READS = 64
"""The times that waiting keys are read, 1,024 bytes each: as many as a terminal may hold."""

_HUNG_UP = select.POLLHUP | select.POLLERR | select.POLLNVAL


@contextmanager
def ctrl_d_dropped(source: Input) -> Iterator[None]:
    """Drop Ctrl-D, which would quit at the next prompt, from the keys that are typed meanwhile; other keys stay."""
    before = get_typeahead(source)
    try:
        yield
    finally:
        # Ctrl-Z may have had to rescue keys, which are older than those in the terminal.
        typed = [*get_typeahead(source), *_waiting_presses(source), *source.flush_keys()]
        store_typeahead(source, [*before, *(press for press in typed if press.key is not Keys.ControlD)])


def ctrl_c_taken(source: Input) -> bool:
    """Take Ctrl-C out of the keys that were typed before the terminal made a signal of it; return whether it was there.

    Other keys stay.
    """
    typed = [*get_typeahead(source), *_waiting_presses(source)]
    store_typeahead(source, [press for press in typed if press.key is not Keys.ControlC])
    return any(press.key is Keys.ControlC for press in typed)


def line_ahead(source: Input) -> bool:
    """Return whether any line was typed ahead, finished or not; keys that make none are dropped.

    Enter would send a text that the next prompt begins with.
    """
    typed = [*get_typeahead(source), *_waiting_presses(source)]
    is_there = bool(text_of(typed).strip())
    store_typeahead(source, typed if is_there else [])
    return is_there


def _waiting_presses(source: Input) -> list[KeyPress]:
    """Read the keys that wait in the terminal; the end of an unfinished paste is left to the next prompt."""
    pressed: list[KeyPress] = []
    descriptor = source.fileno()
    for _ in range(_MOST_READS):
        if is_hung_up(descriptor) or not select.select([descriptor], [], [], 0)[0]:
            break
        pressed += source.read_keys()
    return pressed


def is_hung_up(descriptor: int) -> bool:
    """Return whether the terminal is gone."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return any(event & _HUNG_UP for _, event in poll.poll(0))
