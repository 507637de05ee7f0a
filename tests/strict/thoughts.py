"""Which thoughts come back, whatever the protocol: those that the server itself had sent, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.strict.server import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.strict.server import Call, Sent


class Said(NamedTuple):
    """A reply in a request: its words, its calls by name and arguments, and its thoughts in the provider's form.

    ``is_current`` says that it is part of the turn that is being answered.
    """

    text: str
    calls: Sequence[tuple[str, Any]]
    own: Any
    is_current: bool


class EchoRule(NamedTuple):
    """The thoughts that a provider wants back: of which replies, for how long, and what stands for those that lack.

    ``blank`` is what a reply without thoughts of this model's has, if its calls need that, or if ``blanks_all``. With
    ``may_begin_late`` the thoughts of the first replies may be left out.
    """

    within_turn: bool = False
    never: bool = False
    calls_only: bool = False
    blank: Any = None
    blanks_all: bool = False
    may_begin_late: bool = False
    sentence: str = "The thoughts that led to this reply are missing."
    status: int = 400

    def concerns(self, said: Said) -> bool:
        """Return whether the thoughts of a reply come back."""
        return (
            not self.never and (said.is_current or not self.within_turn) and (bool(said.calls) or not self.calls_only)
        )

    def without(self, said: Said) -> Any:
        """Return what a reply has that no thoughts come back with."""
        return self.blank if self.blanks_all or said.calls else None


NO_ECHO = EchoRule(never=True)


def check_thoughts(every: Iterable[Said], sent: Sequence[Sent], rule: EchoRule) -> None:
    """Check the thoughts of all replies of a request.

    Raises:
        RefusedError: some are missing, are not as they were sent, or come with another reply than they led to.
    """
    has_begun = False
    for said in every:
        own = [each.thoughts for each in sent if is_from(said, each)] if rule.concerns(said) else []
        allowed = [each or rule.without(said) for each in own] or [rule.without(said)]
        has_begun = has_begun or said.own != rule.without(said)
        if said.own in allowed or (rule.may_begin_late and not has_begun):
            continue
        if said.own is None:
            raise RefusedError(rule.sentence, rule.status)
        raise RefusedError(f"These thoughts were not sent with {said.text!r} and {said.calls!r}: {said.own!r}")


def is_from(said: Said, sent: Sent) -> bool:
    """Return whether a reply of a request is one that was sent, maybe with fewer calls."""
    return said.text == sent.text and is_among(said.calls, sent.calls)


def is_among(some: Sequence[tuple[str, Any]], calls: Sequence[Call]) -> bool:
    """Return whether some calls are among others, in the same order."""
    left = iter(calls)
    return all(any((name, arguments) == (call.name, call.arguments) for call in left) for name, arguments in some)
