"""A provider on loopback that answers slowly: in the middle of a reply, or before it, it waits until it may go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk

LONG, LATE = "long", "late"
"""A message with the first is answered with a word and the rest later; one with the second wholly later."""

WORD = "Hm,"
_PATIENCE_SECONDS = 60


class PatientProvider:
    """A running server: its address, and ``may_go_on``, which sets free the replies that wait."""

    def __init__(self) -> None:
        self.address = ""
        self.may_go_on = threading.Event()

    def answer(self, body: dict[str, Any]) -> tuple[int, Iterator[bytes]]:
        return 200, self._pieces(str(body["messages"][-1]["content"]))

    def _pieces(self, said: str) -> Iterator[bytes]:
        if LONG in said:
            # litellm holds a piece back until the next one.
            yield chunk(WORD)
            yield chunk(" ")
            yield chunk(" ")
        if LONG in said or LATE in said:
            self.may_go_on.wait(_PATIENCE_SECONDS)
        yield chunk(f"noted: {said.rsplit(maxsplit=1)[-1]}.")
        yield chunk(finish_reason="stop") + DONE


@contextmanager
def patient() -> Iterator[PatientProvider]:
    provider = PatientProvider()
    with serving(provider.answer) as provider.address:
        try:
            yield provider
        finally:
            provider.may_go_on.set()
