"""What a server offers to the user: prompts with their arguments, resources, and the parts of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import enumerated, size_in_words

_NOT_TYPED = re.compile(r"[\s/]|[^ -~\w]")


class Argument(NamedTuple):
    """An argument of a prompt; every ``description`` in this module is one short line."""

    name: str
    description: str = ""
    is_required: bool = False


class Prompt(NamedTuple):
    """A prompt of a server, with its arguments in the order of their declaration."""

    name: str
    description: str = ""
    arguments: tuple[Argument, ...] = ()

    @property
    def word(self) -> str:
        """The name as the user types it, with ``_`` for spaces, slashes, control characters and non-ASCII symbols."""
        return _NOT_TYPED.sub("_", self.name)


class Resource(NamedTuple):
    """A resource of a server, or a template for addresses of resources, such as ``demo://note/{id}``."""

    uri: str
    description: str = ""


class Offers(NamedTuple):
    """What a server offers to the user."""

    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()


class Part(NamedTuple):
    """A part of an answer: a ``text``, or else a file's ``data``; ``name`` is the address of its resource, if any."""

    text: str = ""
    data: bytes = b""
    media_type: str = ""
    name: str = ""
    speaker: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the part is a file, even an empty or damaged one."""
        return bool(self.data or (self.media_type and not self.text))

    @property
    def file_name(self) -> str:
        """The name of the file."""
        return self.name or self.media_type.replace("/", ".") or "file"

    @property
    def label(self) -> str:
        """The name of the file with its size."""
        return f"{self.file_name} of {size_in_words(len(self.data))}"

    @property
    def told(self) -> str:
        """The text, after the address of its resource; for a file, a note that Chorus cannot attach it."""
        if self.is_file:
            return f"[{self.label}, which Chorus cannot attach]"
        return f"[{self.name}]\n{self.text}" if self.name and self.text else self.text


def arguments_of(prompt: Prompt, command: str, typed: str) -> dict[str, str]:
    """Read the arguments ``typed`` after a prompt's ``command``; raise a ``CommandError`` if they do not fit.

    Values without a name come first: a word for each argument that is not given by name, in the declared order, and
    all remaining words for the last of these. Then come values as ``name=value``; each ends before the next ``name=``.
    """
    names = [each.name for each in prompt.arguments]
    marks = [*re.finditer(rf"(?<!\S)({'|'.join(map(re.escape, names))})=", typed)] if names else []
    ends = [*(mark.start() for mark in marks), len(typed)]
    given = {mark[1]: typed[mark.end() : end].strip() for mark, end in zip(marks, ends[1:], strict=True)}
    left, unnamed = [name for name in names if name not in given], typed[: ends[0]].strip()
    if unnamed and not left:
        raise CommandError(f"{command} takes {f'only {enumerated(names)}' if names else 'no argument'}.")
    given |= zip(left, unnamed.split(None, len(left) - 1), strict=False)
    missing = [each.name for each in prompt.arguments if each.is_required and not given.get(each.name)]
    if missing:
        example = " ".join(f"{name}=…" for name in missing)
        raise CommandError(f"{command} needs {enumerated(missing)}, for example: {command} {example}")
    return given


def joined(said: Iterable[tuple[str, str]]) -> str:
    """Join the texts of speakers into one, with the speakers' names if there are several."""
    told: Sequence[tuple[str, str]] = [(speaker, text) for speaker, text in said if text]
    has_several = len({speaker for speaker, _ in told}) > 1
    return "\n\n".join(f"{speaker}: {text}" if has_several else text for speaker, text in told)
