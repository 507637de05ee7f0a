"""A past into which conversations of other programs are imported, in the database and in the plain list."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import rule

from chorus_cli.log.rows import message_rows
from chorus_cli.log.rules.log_acts import Import
from chorus_cli.log.rules.messages import MessageContent, Role, runs
from chorus_cli.log.rules.operations import NewOperation
from tests.context.rules.kept_past import KeptPast
from tests.context.rules.naive_view import PLACES, Deed, Said

AGES = st.timedeltas(timedelta(0), timedelta(hours=12))


class ImportedPast(KeptPast):
    """Imports messages of any age, on any branch, and moves older ones off the live branch or back to it."""

    @rule(persona=st.sampled_from(("chorus", "chorus", "frodo")), data=st.data())
    def bring_in_an_import(self, persona: str, data: st.DataObject) -> None:
        known = [row.id for row in self.past if isinstance(row, Said) and self._is_imported(row, persona)]
        moved = data.draw(st.dictionaries(st.sampled_from(known), st.booleans(), max_size=3)) if known else {}
        supersedes, revives = (sorted(id_ for id_, off in moved.items() if off is way) for way in (True, False))
        act = Import(("a program",), 1, 1, runs(supersedes), runs(revives))
        deed = self._do(NewOperation(persona, act, self.now))
        self.past[self.past.index(deed)] = deed = replace(deed, moved=tuple(moved.items()))
        places = [place for place in PLACES if place.persona == persona]
        for place in data.draw(st.lists(st.sampled_from(places), max_size=4)):
            at, superseded = self.now - data.draw(AGES), data.draw(st.booleans())
            content = MessageContent(place.thread, Role.USER, "imported", at, superseded=superseded)
            row = message_rows.insert_row(self.connection, persona, content, introduced_by=deed.id)
            self.past.append(Said(row, place.thread, row, at, deed.id, superseded))

    def _is_imported(self, row: Said, persona: str) -> bool:
        makers = (deed for deed in self.past if isinstance(deed, Deed) and deed.id == row.introduced_by)
        return any(deed.kind == "import" and deed.persona == persona for deed in makers)
