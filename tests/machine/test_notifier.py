"""Sentences of services: they reach the chat while it listens, and nobody else."""

from __future__ import annotations

from chorus_cli.machine.notifier import Notifier


def test_sentences_are_told_while_the_chat_listens_and_dropped_otherwise() -> None:
    notifier, progress, asides = Notifier(), list[str](), list[str]()
    notifier.progress("too early")
    with notifier.heard_by(progress.append, asides.append):
        notifier.progress("half of it is done")
        notifier.aside("the oldest messages are summarised")
    notifier.aside("too late")
    assert (progress, asides) == (["half of it is done"], ["the oldest messages are summarised"])


def test_the_end_of_work_in_the_background_is_an_aside_unless_it_is_listened_for() -> None:
    notifier, asides, done = Notifier(), list[str](), list[str]()
    with notifier.heard_by(asides.append, asides.append):
        notifier.done("thread #2")
    with notifier.heard_by(asides.append, asides.append, done.append):
        notifier.done("thread #3")
    assert (asides, done) == (["thread #2"], ["thread #3"])
