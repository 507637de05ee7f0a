"""A naive model of the memory: items as they are, and what each operation changed of them."""

from __future__ import annotations

from typing import Any, NamedTuple


class State(NamedTuple):
    """The parts of an item that operations change."""

    visible: bool
    archived: bool
    pinned: bool
    item_type: str
    content: str


Changes = dict[tuple[int, str], tuple[object, object]]


class NaiveMemory:
    """Items by id; the changes of each operation by its number; which of them are undone, and in which order."""

    def __init__(self) -> None:
        self.items: dict[int, State] = {}
        self.operations: dict[int, Changes] = {}
        self.lenient: set[int] = set()
        self.undone: list[int] = []

    def observe(
        self, number: int, before: dict[int, State], after: dict[int, State], *, passes_over: bool = False
    ) -> None:
        """Note what a new operation changed."""
        assert before == self.items
        self.operations[number] = {
            (item_id, part): (getattr(before.get(item_id, state._replace(visible=False)), part), getattr(state, part))
            for item_id, state in after.items()
            for part in State._fields
            if getattr(before.get(item_id, state._replace(visible=False)), part) != getattr(state, part)
        }
        self.lenient |= {number} if passes_over else set()
        self.items = after

    def undo(self, number: int | None) -> bool:
        """Take an operation back, or the newest that counts; return whether that is possible."""
        counting = [each for each in self.operations if each not in self.undone]
        if not counting or (number is not None and number in self.undone):
            return False
        chosen = max(counting) if number is None else number
        back = {key: (after, before) for key, (before, after) in self.operations[chosen].items()}
        if not self._change(back, lenient=chosen in self.lenient):
            return False
        self.undone.append(chosen)
        return True

    def redo(self, number: int) -> bool:
        """Put an undone operation back; return whether that is possible."""
        if number not in self.undone:
            return False
        changes = self.operations[number]
        if number in self.lenient:
            changes = {key: each for key, each in changes.items() if not self.items[key[0]].pinned}
        if not self._change(changes, lenient=number in self.lenient):
            return False
        self.undone.remove(number)
        return True

    def _change(self, changes: Changes, *, lenient: bool) -> bool:
        fitting = {key: each for key, each in changes.items() if getattr(self.items[key[0]], key[1]) == each[0]}
        if len(fitting) < len(changes) and not lenient:
            return False
        items = dict(self.items)
        for (item_id, part), (_, after) in fitting.items():
            part_of: dict[str, Any] = {part: after}
            items[item_id] = items[item_id]._replace(**part_of)
        contents = [state.content for state in items.values()]
        if len(set(contents)) < len(contents):
            return False
        self.items = items
        return True
