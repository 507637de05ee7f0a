"""Checks a model's name as typed: impossible names are refused, doubtful ones give a warning."""

from __future__ import annotations

from collections import defaultdict
from difflib import get_close_matches
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ModelNameError
from chorus_cli.core.text.phrases import enumerated, quoted
from chorus_cli.models.rules.choice import ELIZA

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

_EMBEDDED = ELIZA.partition("/")[0]
_MOST_SUGGESTIONS = 3
_LONGEST_EXAMPLE = 40


def doubt_about(
    name: str, names: AbstractSet[str], providers: AbstractSet[str], likely: Sequence[str] = ()
) -> str | None:
    """Return a warning if litellm, which knows ``names`` and ``providers``, if any, knows no provider of ``name``.

    Any model of a known provider is accepted, because new ones appear every week. Of ``likely`` models, the likeliest
    first, those that contain ``name`` are suggested before others. A ``ModelNameError`` refuses impossible names.
    """
    if not name:
        raise ModelNameError("Model name missing: write provider/name, such as ollama/llama3.2.")
    if any(character.isspace() for character in name):
        raise ModelNameError(f"Model names contain no spaces: {quoted(name)}.")
    if not name.isprintable():
        raise ModelNameError(f"Model names contain no invisible characters: {quoted(name)}.")
    provider, slash, rest = name.partition("/")
    if name == ELIZA or name in names or not (slash or names):
        return None
    if not slash:
        raise ModelNameError(
            f"There is no model {quoted(name)}: a name without a provider must be one that litellm knows. "
            f"Write it as provider/name, such as ollama/{name[:_LONGEST_EXAMPLE]}."
            f"{_question(_alike(name, {*names, ELIZA}, likely))}"
        )
    if not provider or not rest:
        problem = "is an incomplete model name: write provider/name, such as ollama/llama3.2."
        raise ModelNameError(f"{quoted(name)} {problem}")
    if provider == _EMBEDDED:
        raise ModelNameError(f"There is no model {quoted(name)}: the only embedded model is {ELIZA}.")
    if not providers or provider in providers:
        return None
    by_spelling = {known.casefold(): known for known in sorted(providers)}
    near = get_close_matches(provider.casefold(), by_spelling, n=1)
    meant = _question([f"{by_spelling[spelling]}/{rest}" for spelling in near])
    return f"litellm knows no provider {provider!r}, so messages may fail.{meant}"


def _alike(name: str, names: Iterable[str], likely: Sequence[str]) -> list[str]:
    """Return the names that differ only in case or prefix, else likely ones that contain it, else similar ones."""
    by_spelling: defaultdict[str, list[str]] = defaultdict(list)
    for known in sorted(names, key=lambda known: (len(known), known)):
        by_spelling[known.casefold().rpartition("/")[2]].append(known)
    typed = name.casefold()
    same = by_spelling.get(typed, [])
    if same:
        same = [*(known for known in likely if known in same), *(known for known in same if known not in likely)]
        exact = [known for known in same if known.casefold() == typed]
        return exact[:1] or same[:_MOST_SUGGESTIONS]
    held = [known for known in likely if typed in known.casefold().rpartition("/")[2]]
    if held:
        return held[:_MOST_SUGGESTIONS]
    return [by_spelling[near][0] for near in get_close_matches(typed, by_spelling, n=_MOST_SUGGESTIONS)]


def _question(suggestions: list[str]) -> str:
    return f" Did you mean {enumerated(suggestions, 'or')}?" if suggestions else ""
