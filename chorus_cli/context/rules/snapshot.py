"""The context snapshot: everything that the next request of a thread follows from, as it is at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rules.attachments import ALL_SENT
from chorus_cli.models.rules.budget import LARGEST_FACTOR, TOKENS_PER_MESSAGE, Budget, Calibration, Limit, budget
from chorus_cli.models.rules.declaration import NO_OFFER, ToolOffer
from chorus_cli.models.rules.request import NO_ECHO, Echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from chorus_cli.context.rules.rounds import Echoed
    from chorus_cli.context.rules.view import View
    from chorus_cli.log.rules.attachments import Kind
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.personas.rules.persona import Document
    from chorus_cli.personas.rules.target import Target


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The system prompt with the documents, and the tokens of both."""

    text: str
    prompt_tokens: int
    document_tokens: int
    tokens: int = field(init=False)
    """The tokens of the system message without a summary."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", self.prompt_tokens + self.document_tokens + TOKENS_PER_MESSAGE)


def system_text(system_prompt: str, documents: Iterable[Document]) -> str:
    """Return the system message: the prompt, then each document under its name."""
    return "\n\n".join([system_prompt, *(f"# {document.name}\n\n{document.content}" for document in documents)])


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of a snapshot that no database holds: the target, its system prompt, its model's limit, and the tools.

    ``offer`` is empty where no tools are offered to the model. Without ``is_exact`` the tokens are upper bounds.
    ``accepted`` are the kinds of attachments that the model is sent; of the others it is told the names. ``echo`` says
    which of its thoughts it is sent again.
    """

    target: Target
    system_prompt: SystemPrompt
    limit: Limit
    offer: ToolOffer = NO_OFFER
    is_exact: bool = True
    accepted: frozenset[Kind] = ALL_SENT
    echo: Echo = NO_ECHO
    fixed_tokens: int = field(init=False)
    """The estimated tokens that every request has: the system message without a summary, and the tools."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed_tokens", self.system_prompt.tokens + self.offer.tokens)

    def budget(self, learned: Calibration) -> Budget:
        """Return the budget of a request that has no conversation before it."""
        chosen = self.target.persona.settings
        return budget(self.limit, chosen.context_usage_threshold, chosen.max_output_tokens, learned)

    def surely_takes(self, most_tokens: int) -> bool:
        """Return whether a message of at most so many estimated tokens fits, however far estimates are off."""
        return self.fixed_tokens + most_tokens <= self.budget(Calibration(LARGEST_FACTOR)).room.budget


class RequestStart(NamedTuple):
    """The beginning of a request: its window, and what it has in common with the last one while that is warm.

    ``first_message_id`` is the message that the last request began with, where it left others out. ``hot`` are the
    memory items of the system message, ``None`` if they are chosen anew, as they are with another summary than
    ``summary_id``.
    """

    window: datetime
    first_message_id: int | None = None
    hot: tuple[Item, ...] | None = None
    summary_id: int | None = None


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """A context at one moment: the view of a thread, and the system prompt and budget of the next request.

    ``newest_operation_id`` is the newest operation that breaks the prefix of requests, 0 if there is none;
    ``fold_is_undone`` says that the newest fold was taken back. ``last_spoken`` is the time of the newest message of
    the thread. ``first_message_id`` is the message that the last request of this process began with, where it left
    older ones out. ``hot`` are the memory items of the system message. ``echoed`` are the thoughts that go with
    replies, by the ids of these. With ``is_plain``, the model takes earlier turns only as plain text.
    ``unread`` is a sentence about operations that cannot be read, empty if there are none.
    """

    frame: Frame
    view: View
    budget: Budget
    newest_operation_id: int = 0
    fold_is_undone: bool = False
    last_spoken: datetime | None = None
    first_message_id: int | None = None
    hot: tuple[Item, ...] = ()
    echoed: Mapping[int, Echoed] = field(default_factory=dict)
    is_plain: bool = False
    unread: str = ""

    @property
    def target(self) -> Target:
        """Persona, thread and model that the next message is addressed to."""
        return self.frame.target
