"""Makes untrusted text safe to show: control characters become visible, hidden characters are removed.

The filter replaces or removes single code points and not whole escape sequences, so that it loses nothing readable and
needs no parser. It is for display only: the log keeps the original.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from chorus_cli.core.text import code_points

MARKS_PER_BASE = 30
"""How many combining marks one base may carry: the limit of UAX #15's stream-safe text format."""

DECODED_LENGTH = 200
"""How many characters of decoded tags a warning quotes."""

_FIRST_LETTER_WITH_NON_JOINER = "\u0600"
_LONGEST_UNDECIDED_TAIL = 8  # a black flag, six tags and half a surrogate pair
_TAG_OFFSET = 0xE0000
_CONTROL_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}

_PLAIN_ASCII = re.compile(r"[\n\t -~]+")
_SELECTOR = f"[{code_points.EMOJI_SELECTORS}]"
_BREAKS_AND_TABS = re.compile(r"[\n\t]+")


# These patterns are compiled when they are first needed, because ASCII needs none of them.


@cache
def _plain_text() -> re.Pattern[str]:
    return re.compile(f"[{code_points.PLAIN}]+")


@cache
def _joining() -> re.Pattern[str]:
    return re.compile(f"[{code_points.JOINING}]")


@cache
def _token_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<plain>[{code_points.PLAIN}]+)"
        rf"|(?P<line_break>\r\n|[{code_points.UNICODE_LINE_BREAKS}])"
        rf"|(?P<control>(?:[{code_points.CONTROLS}]|\r(?!\n))+)"
        rf"|(?P<c1_control>[{code_points.C1_CONTROLS}])"
        rf"|(?P<unfit>[{code_points.BIDI_CONTROLS}{code_points.NONCHARACTERS}])"
        rf"|(?P<lone_surrogate>[{code_points.SURROGATES}]+)"
        rf"|(?P<flag>{code_points.FLAG_PATTERN})"
        rf"|(?P<tags>[{code_points.TAG_CHARACTERS}{code_points.CANCEL_TAG}]+)"
        rf"|(?P<ignorable>[{code_points.IGNORABLES}]+)"
        rf"|(?P<joiner>{code_points.ZERO_WIDTH_JOINER})"
        rf"|(?P<non_joiner>{code_points.ZERO_WIDTH_NON_JOINER})"
        rf"|(?P<selector>[{code_points.EMOJI_SELECTORS}])"
        r"|(?P<other>.)",
        re.DOTALL,
    )


@cache
def _undecided_tail() -> re.Pattern[str]:
    return re.compile(rf"(?:\r|(?:{code_points.UNFINISHED_FLAG_PATTERN})?[{code_points.HIGH_SURROGATES}]?)\Z")


@cache
def _hiding() -> re.Pattern[str]:
    return re.compile(
        f"[{code_points.BIDI_CONTROLS}{code_points.NONCHARACTERS}{code_points.IGNORABLES}"
        f"{code_points.TAG_CHARACTERS}{code_points.CANCEL_TAG}{code_points.EMOJI_SELECTORS}"
        f"{code_points.UNICODE_LINE_BREAKS}{code_points.ZERO_WIDTH_JOINER}{code_points.ZERO_WIDTH_NON_JOINER}]"
    )


class SafeTextStream:
    """Filters text that arrives in pieces; the result does not depend on where the pieces end.

    Between two pieces it keeps the state of the last character, and an undecided tail: a carriage return, half a
    surrogate pair, the beginning of a flag, or a joiner whose right neighbour is not known yet. ``hidden_count`` code
    points were removed so far; ``decoded_tags`` is the printable ASCII that hidden tags spelt.
    """

    def __init__(self) -> None:
        self._undecided = ""
        self._joiner_waits = False
        self._previous = ""
        self._base = ""
        self._mark_count = 0
        self.hidden_count = 0
        self.decoded_tags = ""

    def feed(self, chunk: str) -> str:
        """Return the part of the undecided tail and ``chunk`` that can be shown now."""
        if not (self._undecided or self._joiner_waits) and _is_plain(chunk):
            return self._shown(chunk)
        text = code_points.paired(self._undecided + chunk)
        tail = _undecided_tail().search(text, max(0, len(text) - _LONGEST_UNDECIDED_TAIL))
        decided = tail.start() if tail else len(text)
        self._undecided = text[decided:]
        return self._filtered(text[:decided])

    def close(self) -> str:
        """Return the undecided tail and a waiting joiner, filtered as the end of the text."""
        undecided, self._undecided = self._undecided, ""
        return (self._filtered(undecided) if undecided else "") + self._released_joiner("")

    def _filtered(self, text: str) -> str:
        return "".join([self._token(match) for match in _token_pattern().finditer(text)])

    def _token(self, match: re.Match[str]) -> str:
        text = match.group()
        match match.lastgroup:
            case "plain" | "flag":
                return self._shown(text)
            case "ignorable":
                return self._hidden(text)
            case "tags":
                return self._decoded_and_hidden(text)
            case "joiner":
                return self._joiner(text)
            case "non_joiner":
                return self._non_joiner(text)
            case "selector":
                return self._selector(text)
            case "other":
                return self._mark(text) if unicodedata.category(text).startswith("M") else self._shown(text)
            case kind:
                return self._shown(_made_visible(kind, text))

    def _shown(self, text: str) -> str:
        joiner = self._released_joiner(text[0]) if self._joiner_waits else ""
        self._previous = self._base = text[-1]
        self._mark_count = 0
        return joiner + text

    def _hidden(self, text: str) -> str:
        self.hidden_count += len(text)
        return ""

    def _decoded_and_hidden(self, tags: str) -> str:
        printable = (chr(ord(tag) - _TAG_OFFSET) for tag in tags)
        self.decoded_tags += "".join(filter(str.isprintable, printable))
        return self._hidden(tags)

    def _joiner(self, joiner: str) -> str:
        """Hold a joiner for its right neighbour; hide it if another is held or its left neighbour cannot be joined."""
        if self._joiner_waits or not _joining().match(self._base):
            return self._hidden(joiner)
        self._joiner_waits = True
        return ""

    def _released_joiner(self, following: str) -> str:
        """Return the held joiner if ``following`` can be joined, else hide it; empty if none is held."""
        if not self._joiner_waits:
            return ""
        self._joiner_waits = False
        joiner = code_points.ZERO_WIDTH_JOINER
        return joiner if _joining().match(following) else self._hidden(joiner)

    def _non_joiner(self, non_joiner: str) -> str:
        """Keep a non-joiner after a letter (with its marks) of a script that uses non-joiners; hide it elsewhere."""
        if not (self._base.isalpha() and self._base >= _FIRST_LETTER_WITH_NON_JOINER):
            return self._hidden(non_joiner)
        self._released_joiner(non_joiner)
        # The count of marks is not reset here: with non-joiners between them, marks could stack without end.
        self._previous = self._base = non_joiner
        return non_joiner

    def _selector(self, selector: str) -> str:
        """Keep a selector after a visible character and count it as a mark, so that marks cannot stack without end."""
        after_visible = self._previous.strip() and self._previous != code_points.ZERO_WIDTH_NON_JOINER
        if not after_visible or re.match(_SELECTOR, self._previous):
            return self._hidden(selector)
        return self._mark(selector)

    def _mark(self, mark: str) -> str:
        if self._mark_count >= MARKS_PER_BASE:
            return self._hidden(mark)
        joiner = self._released_joiner(mark)
        self._previous = mark
        self._mark_count += 1
        return joiner + mark


def safe_text(text: str) -> str:
    """Return ``text`` as it may be shown on a terminal."""
    stream = SafeTextStream()
    return stream.feed(text) + stream.close()


def safe_line(text: str) -> str:
    """Return ``text`` as it may be shown within one line: each run of line breaks and tabs becomes one space."""
    return _BREAKS_AND_TABS.sub(" ", safe_text(text))


def may_hide(line: str) -> bool:
    """Return whether ``line`` has characters that may be invisible or change the order in which text reads."""
    return not (line.isascii() or _is_plain(line)) and _hiding().search(line) is not None


def revealed(line: str) -> list[str]:
    """Return each character of ``line``, or a code such as ``<U+202E>`` if ``safe_text`` changes it; controls stay."""
    shown, place = safe_text(line), 0
    signs: list[str] = []
    for character in line:
        if shown.startswith(character, place):
            signs.append(character)
            place += 1
            continue
        alone, sign = _alone(character)
        if shown.startswith(alone, place):
            place += len(alone)
        signs.append(sign)
    return signs


@cache
def _alone(character: str) -> tuple[str, str]:
    """Return how ``safe_text`` shows a character by itself, and the sign by which ``revealed`` replaces it."""
    sign = character if unicodedata.category(character) in {"Cc", "Cs"} else _number(character)
    return safe_text(character), sign


def hidden_warning(stream: SafeTextStream, place: str = "this reply") -> str | None:
    """Return a warning with the number of hidden characters and the text spelt in tags; ``None`` if none is hidden."""
    if not stream.hidden_count:
        return None
    characters = "hidden character" if stream.hidden_count == 1 else "hidden characters"
    decoded = stream.decoded_tags
    if len(decoded) > DECODED_LENGTH:
        decoded = decoded[:DECODED_LENGTH] + "..."
    return f"{stream.hidden_count} {characters} in {place}" + (f' (decoded: "{decoded}")' if decoded else "")


def _is_plain(text: str) -> bool:
    return bool(_PLAIN_ASCII.fullmatch(text) or _plain_text().fullmatch(text))


def _made_visible(kind: str | None, text: str) -> str:
    match kind:
        case "line_break":
            return "\n"
        case "control":
            return text.translate(_CONTROL_PICTURES)
        case "c1_control":
            return f"<{ord(text):02X}>"
        case "lone_surrogate":
            return code_points.REPLACEMENT_CHARACTER * len(text)
        case _:
            return _number(text)


def _number(character: str) -> str:
    return f"<U+{ord(character):04X}>"
