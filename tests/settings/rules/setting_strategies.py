"""Values that settings accept, for the properties of everything that reads and writes them."""

from __future__ import annotations

from hypothesis import strategies as st

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.table import Kind, Setting

FAR = 10**30


def accepted_values(setting: Setting) -> st.SearchStrategy[JsonValue]:
    """Every value that a setting takes and that JSON can hold."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    low, high = setting.minimum or 0, setting.maximum or FAR
    match setting.kind:
        case Kind.TEXT:
            return st.sampled_from(setting.choices) if setting.choices else text
        case Kind.TEXTS:
            return st.lists(text, max_size=4)
        case Kind.FLAG:
            return st.booleans()
        case Kind.WHOLE_NUMBER:
            return st.integers(int(low), int(high))
        case Kind.NUMBER:
            return st.floats(low, high, allow_nan=False)
