"""Documents with comments and blanks anywhere, and another parser as oracle."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace

import jsonyx
from hypothesis import strategies as st

from chorus_cli.core.json.jsonc import JsonValue

WHITE = st.sampled_from(["", "", " ", "  ", "\t", "\n", "\n  ", "\n\n\t"])
COMMENTS = st.sampled_from(["//\n", "// é, }\n", '// "k": 1\n', "/**/", "/* , */", '/* "\n * // \n */'])
GAP = st.lists(st.one_of(WHITE, WHITE, WHITE, COMMENTS), max_size=3).map("".join)
TEXT = st.one_of(
    st.sampled_from(["", "//", "/*", "*/", "}", '"', "\\"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
KEYS = st.one_of(st.sampled_from(["k", "a", "b", "é", ""]), TEXT)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)


@dataclass(frozen=True)
class Specimen:
    """A document in pieces: the text before and after, and per member its lead, key, colon, value and tail."""

    head: str
    members: tuple[tuple[str, str, str, str, str], ...]
    trailing: str
    foot: str
    line_end: str

    def text(self) -> str:
        joined = self.head + ",".join("".join(member) for member in self.members) + self.trailing + self.foot
        return joined.replace("\n", self.line_end)

    def key(self, index: int) -> str:
        return str(json.loads(self.members[index][1]))

    def body(self, index: int) -> str:
        return "".join(self.members[index][1:4]).replace("\n", self.line_end)

    def value(self) -> dict[str, JsonValue]:
        return read_by_oracle(self.text())

    def comments(self, *, without_values_of: str) -> list[str]:
        shown = tuple(
            (*member[:3], "0" if self.key(index) == without_values_of else member[3], member[4])
            for index, member in enumerate(self.members)
        )
        return comments(replace(self, members=shown).text())


@st.composite
def scribbled(draw: st.DrawFn, value: JsonValue) -> str:
    """Write a value as JSONC with gaps anywhere."""
    if isinstance(value, (dict, list)):
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        parts = value.items() if isinstance(value, dict) else [(None, item) for item in value]
        written = [
            ("" if key is None else json.dumps(key) + draw(GAP) + ":" + draw(GAP)) + draw(scribbled(item)) + draw(GAP)
            for key, item in parts
        ]
        trailing = "," + draw(GAP) if draw(st.booleans()) and written else ""
        return opening + draw(GAP) + ("," + draw(GAP)).join(written) + trailing + closing
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def specimens(draw: st.DrawFn) -> Specimen:
    head = draw(st.sampled_from(["", "\ufeff"])) + draw(GAP) + "{"
    members = tuple(
        (
            draw(GAP),
            json.dumps(key, ensure_ascii=draw(st.booleans())),
            draw(GAP) + ":" + draw(GAP),
            draw(scribbled(value)),
            draw(GAP),
        )
        for key, value in draw(st.lists(st.tuples(KEYS, VALUES), max_size=4))
    )
    trailing = draw(st.sampled_from(["", ","])) + draw(GAP) if members else draw(GAP)
    return Specimen(head, members, trailing, "}" + draw(GAP), draw(st.sampled_from(["\n", "\r\n"])))


def read_by_oracle(text: str) -> dict[str, JsonValue]:
    allowed = jsonyx.allow.COMMENTS | jsonyx.allow.TRAILING_COMMA
    value: dict[str, JsonValue] = jsonyx.loads(text.removeprefix("\ufeff"), allow=allowed)
    return value


def infinities_of_oracle(text: str) -> list[float]:
    """Return the numbers that the oracle takes for infinity, also in members overridden by a later one."""
    numbers: list[float] = []

    def number(digits: str) -> float:
        numbers.append(float(digits))
        return numbers[-1]

    jsonyx.loads(text, allow=jsonyx.allow.COMMENTS | jsonyx.allow.TRAILING_COMMA, hooks={"float": number})
    return [each for each in numbers if math.isinf(each)]


def comments(text: str) -> list[str]:
    found = re.findall(r'"(?:\\.|[^"\\])*"|//[^\r\n]*|/\*.*?\*/', text, re.DOTALL)
    return [piece for piece in found if piece.startswith("/")]


def contains_in_order(text: str, pieces: list[str]) -> bool:
    offset = 0
    for piece in pieces:
        offset = text.find(piece, offset) + len(piece)
        if offset < len(piece):
            return False
    return True
