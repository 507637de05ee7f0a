"""Attachments in context that a model is sent only by name: it does not take them, or their bytes are gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chorus_cli.attachments.service.attachments import KIND_NAMES
from chorus_cli.core.text.phrases import enumerated
from chorus_cli.log.rules.attachments import ALL_SENT
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from chorus_cli.context.rules.plan import RequestPlan
    from chorus_cli.log.rules.attachments import Attachment, Kind


class UnsentFiles:
    """Tells once which attachments a request has only by name; ``is_stored`` says whether the bytes of one are there.

    It is told again when a thread has another model. ``told`` holds the model and the files, by the thread.
    """

    def __init__(self, is_stored: Callable[[Attachment], bool]) -> None:
        self._is_stored = is_stored
        self.told: dict[int, tuple[str, frozenset[Attachment]]] = {}

    async def news(self, plan: RequestPlan) -> list[str]:
        """Return the sentences about attachments of a request that the one before it in the thread did not have."""
        attached = dict.fromkeys(each for row in plan.sent if row.role is Role.USER for each in row.attachments)
        files = [each for each in attached if each.kind in ALL_SENT]
        target, accepted = plan.snapshot.target, plan.snapshot.frame.accepted
        thread_id, model = target.thread_id, target.choice.model
        if not files:
            self.told.pop(thread_id, None)
            return []
        taken = [each for each in files if each.kind in accepted]
        gone = set(await asyncio.to_thread(lambda: [each for each in taken if not self._is_stored(each)]))
        unsent = [each for each in files if each in gone or each.kind not in accepted]
        known, told = self.told.get(thread_id, (model, frozenset()))
        self.told[thread_id] = model, frozenset(unsent)
        new = [each for each in unsent if known != model or each not in told]
        return [
            *_untaken(model, [each for each in new if each not in gone]),
            *_gone([each for each in new if each in gone]),
        ]


def _untaken(model: str, files: Sequence[Attachment]) -> Iterable[str]:
    """Yield a sentence for each kind of files that a model does not take."""
    kinds: dict[Kind, list[str]] = {}
    for each in files:
        kinds.setdefault(each.kind, []).append(each.name)
    for kind, names in kinds.items():
        yield f"{model} takes no {KIND_NAMES[kind]}, so it is sent only the {_name_of(names)}."


def _gone(files: Sequence[Attachment]) -> Iterable[str]:
    """Yield a sentence about files whose bytes are gone, if there are any."""
    names = enumerated([each.name for each in files])
    if len(files) == 1:
        yield f"The copy that Chorus kept of {names} is gone; the model is sent only its name."
    elif files:
        yield f"The copies that Chorus kept of {names} are gone; the model is sent only their names."


def _name_of(names: Sequence[str]) -> str:
    """Return ``name of photo.png`` or ``names of photo.png and paper.pdf``."""
    return f"name{'' if len(names) == 1 else 's'} of {enumerated(names)}"
