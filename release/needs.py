"""Which installed packages a package needs, by their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name


def needed(
    root: str, installed: Iterable[Distribution], *, extras: Iterable[str] = (), without: Iterable[str] = ()
) -> tuple[Distribution, ...]:
    """Return the packages that ``root`` and its ``extras`` need, itself among them, in the order of their names.

    Neither a package of ``without`` nor what it alone needs is among them; a package that is not installed is left out.
    """
    by_name = {canonicalize_name(each.name): each for each in reversed(tuple(installed))}
    left_out = {canonicalize_name(name) for name in without}
    waiting = [(canonicalize_name(root), extra) for extra in ("", *extras)]
    seen: set[tuple[NormalizedName, str]] = set()
    while waiting:
        name, extra = step = waiting.pop()
        if step in seen or name in left_out or name not in by_name:
            continue
        seen.add(step)
        for line in by_name[name].requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(wanted.name), each) for each in ("", *wanted.extras)]
    return tuple(by_name[name] for name in sorted({name for name, _ in seen}))
