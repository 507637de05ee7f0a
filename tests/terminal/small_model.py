"""A persona whose model takes little, talked to in a terminal, and a provider on loopback that answers slowly."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from tests.loopback_providers import is_for_summary
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.driver import PROMPT, Home, Terminal

Messages = Sequence[dict[str, Any]]
MODEL = "openai/small"
_COUNTER = VocabularyCounter()
_FOLD_SECONDS = 0.5
_SO_FAR = "Summary of the conversation so far:"


def furnish(home: Home, limit: int, model: str = MODEL) -> None:
    folder = home.path / "personas" / "chorus"
    for place in (home.path, folder.parent, folder):
        place.mkdir(mode=0o700, exist_ok=True)
    settings = {"name": "Chorus", "system_prompt": "Be brief.", "model": model, "context_token_limit": limit}
    file = folder / "system.jsonc"
    file.touch(mode=0o600)
    file.write_text(json.dumps(settings))


@contextmanager
def talking(home: Home, address: str, **variables: str) -> Iterator[Terminal]:
    with home.chat(OPENAI_BASE_URL=address, OPENAI_API_KEY="sk-of-nobody", **variables) as chat:
        yield chat


def say(chat: Terminal, *words: str, more: int) -> None:
    """Send a message for each word, with so many words more, and wait for each reply.

    They are pasted: to each key by itself the prompt is drawn anew, which costs more than all the rest.
    """
    for word in words:
        chat.paste(" ".join([word, *["and"] * more]))
        chat.press("enter")
        chat.await_text(f"{PROMPT} {word}")
        chat.await_line(PROMPT)


def numbered(first: int, last: int) -> list[str]:
    return [f"turn-{number}:" for number in range(first, last + 1)]


def asked_of_the_summariser(requests: Iterable[Messages]) -> list[str]:
    """Return what it was given to read, request by request."""
    return [str(request[-1]["content"]) for request in requests if is_for_summary(request)]


def asked_of_the_model(requests: Iterable[Messages]) -> list[str]:
    return ["\n".join(str(each["content"]) for each in request) for request in requests if not is_for_summary(request)]


def fits(request: Messages, limit: int) -> bool:
    """Return whether a request is within a limit by the real vocabulary."""
    return sum(_COUNTER.count(str(each["content"])) + TOKENS_PER_MESSAGE for each in request) <= limit


def stored_summaries(home: Home) -> list[str]:
    return list(home.sql("SELECT content FROM summaries ORDER BY operation_id"))


def await_folds(chat: Terminal, home: Home, requests: Callable[[], Sequence[Messages]]) -> None:
    """Look until every summary that was asked for is stored, and a moment later still: the last turn may begin one."""

    def counts() -> tuple[int, int]:
        return len(asked_of_the_summariser(requests())), len(stored_summaries(home))

    def is_settled() -> bool:
        before = counts()
        time.sleep(_FOLD_SECONDS)
        return before == counts() and before[0] == before[1]

    chat.until(is_settled, "the last fold")


def assert_each_extends_the_one_before(asked: Sequence[str], stored: Sequence[str], said: Sequence[str]) -> None:
    """Each request to the summariser begins from the summary before and holds the turns after those, each turn once."""
    assert len(asked) == len(stored)
    for request, before in zip(asked[1:], stored, strict=False):
        assert request.startswith(f"{_SO_FAR}\n\n{before}\n\n")
    assert _SO_FAR not in asked[0]
    taken_in = re.findall(r"^Human: (\S+)", "\n".join(asked), re.MULTILINE)
    assert taken_in == [message.split()[0] for message in said[: len(taken_in)]]


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
