"""The news of ended jobs: their last lines, which go once with the next message of the thread that started them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.jobs.rules.wording import brief_news_text, news_text

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.machine.states import EndedJob

_MOST_JOBS = 10


class News(NamedTuple):
    """The news that go with one message; ``since`` is when the newest of them came."""

    thread_id: int
    ended: tuple[EndedJob, ...] = ()
    since: datetime | None = None

    @property
    def text(self) -> str:
        """The lines for the model; empty if there is no news."""
        return news_text(self.ended)

    @property
    def brief_text(self) -> str:
        """The lines for a model that has no room for output."""
        return brief_news_text(self.ended)


class NewsDesk:
    """Keeps the news of each thread until they are sent, and of each turn what was sent with it."""

    def __init__(self) -> None:
        self._waiting: dict[int, News] = {}
        self._sent: dict[int, News] = {}

    def add(self, thread_id: int, ended: EndedJob, now: datetime) -> None:
        """Keep the news of a job for the next message of its thread; only the newest jobs are kept."""
        waiting = self._waiting.get(thread_id, News(thread_id))
        self._waiting[thread_id] = News(thread_id, (*waiting.ended, ended)[-_MOST_JOBS:], now)

    def take(self, thread_id: int) -> News:
        """Return the news of a thread, which do not wait any longer."""
        return self._waiting.pop(thread_id, News(thread_id))

    def put_back(self, news: News) -> None:
        """Let news wait again, because their message was not sent."""
        if news.ended:
            later = self._waiting.get(news.thread_id, news._replace(ended=()))
            self._waiting[news.thread_id] = later._replace(ended=(*news.ended, *later.ended)[-_MOST_JOBS:])

    def keep_back(self, thread_id: int, since: datetime | None) -> tuple[EndedJob, ...]:
        """Drop the news of a thread if they came at ``since`` or later, and return their jobs."""
        waiting = self._waiting.get(thread_id)
        if waiting is None or (since is not None and waiting.since is not None and waiting.since < since):
            return ()
        return self.take(thread_id).ended

    def sent(self, news: News, turn_id: int) -> None:
        """Remember that news went with a turn."""
        self._sent[turn_id] = news

    def turn_undone(self, turn_id: int) -> tuple[EndedJob, ...]:
        """Let the news of a turn wait again, because it was undone, and return their jobs."""
        news = self._sent.get(turn_id)
        if news is None:
            return ()
        self.put_back(news)
        return news.ended

    def turn_redone(self, turn_id: int) -> None:
        """Drop the news of a turn that is back in context, unless they were sent again."""
        news = self._sent.get(turn_id)
        waiting = self._waiting.get(news.thread_id) if news else None
        if news is None or waiting is None:
            return
        left = tuple(each for each in waiting.ended if each not in news.ended)
        if left:
            self._waiting[news.thread_id] = waiting._replace(ended=left)
        else:
            del self._waiting[news.thread_id]
