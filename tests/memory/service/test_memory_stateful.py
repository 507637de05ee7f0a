"""Whatever is remembered, corrected, replaced, forgotten, put away and taken back: the memory is as expected."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.core.errors import ChorusError
from chorus_cli.framework.replies import Question
from chorus_cli.log.rows.sqlite_words import matching
from chorus_cli.log.rows.word_index import index_of
from chorus_cli.log.rows.words import ITEMS, Texts
from chorus_cli.log.rules.search_query import Term, Wanted
from chorus_cli.memory.rows.item_changes import NewItem
from chorus_cli.memory.rules.items import PROPOSED, WITHDRAWN, ItemType, Source
from chorus_cli.storage.schema import TOKENIZER
from chorus_cli.storage.store import Store
from tests.fakes import FakeClock, ScriptedModel
from tests.memory.remembered import Remembering
from tests.storage.database import quick
from tests.storage.schemas import SERVER, give_back
from tests.world import built


class State(NamedTuple):
    """The parts of an item that operations change."""

    visible: bool
    archived: bool
    pinned: bool
    item_type: str
    content: str
    replaced_by: int
    may_replace: int


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
        before = {
            id_: state._replace(visible=False, may_replace=WITHDRAWN if state.may_replace < 0 else state.may_replace)
            for id_, state in after.items()
        } | before
        self.operations[number] = {
            (item_id, part): (getattr(before[item_id], part), getattr(state, part))
            for item_id, state in after.items()
            for part in State._fields
            if getattr(before[item_id], part) != getattr(state, part)
        }
        for item_id, state in after.items():
            if PROPOSED in {state.may_replace, before[item_id].may_replace} and state != before[item_id]:
                self.operations[number].setdefault((item_id, "visible"), (False, False))
            if state.replaced_by and not before[item_id].replaced_by:
                self.operations[number].setdefault((state.replaced_by, "visible"), (True, True))
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
        reopened = {id_ for (id_, part), (_, after) in changes.items() if part == "visible" and after}
        closed = {id_ for id_ in reopened if self.items[id_].replaced_by and (id_, "replaced_by") not in changes}
        fitting = {key: each for key, each in fitting.items() if key[0] not in closed}
        if len(fitting) < len(changes) and not lenient:
            return False
        items = dict(self.items)
        for (item_id, part), (_, after) in fitting.items():
            part_of: dict[str, Any] = {part: after}
            items[item_id] = items[item_id]._replace(**part_of)
        contents = [state.content for state in items.values() if not state.replaced_by]
        if len(set(contents)) < len(contents):
            return False
        self.items = items
        return True


CONTENTS = ("buy milk", "the office is in Leeds", "the office is in York", "東京 in spring")
TYPES = (ItemType.TASK, ItemType.PRD_SECTION)


class Machine(RuleBasedStateMachine):
    """Has a user act on the memory of a persona."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.memory = self.run(self.opened())

    async def opened(self) -> Remembering:
        folder = Path(self.folder.name)
        self.store = Store(quick(folder / "chorus.db"))
        await self.store.open()
        return Remembering(await built(folder, self.store, FakeClock(), ScriptedModel(), 10_000))

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()
        give_back(Path(self.folder.name) / "chorus.db")
        self.folder.cleanup()

    async def rows(self) -> dict[int, State]:
        found = await self.memory.sql(
            "SELECT id, forgotten_by IS NULL, tier = 'ARCHIVED', pinned, item_type, content, replaced_by, may_replace "
            "FROM context_items"
        )
        return {id_: State(bool(a), bool(b), bool(c), *words) for id_, a, b, c, *words in found}

    async def proposed(self, *contents: str) -> None:
        """Propose facts, as a model does that distils the talk."""
        facts = [NewItem(ItemType.PRD_SECTION, content, Source.MODEL) for content in contents]
        await self.memory.service.propose(self.memory.slug, facts, "thread #1", ())

    @invariant()
    def a_proposed_fact_is_hidden_and_the_inbox_has_it(self) -> None:
        facts = {id_ for id_, state in self.run(self.rows()).items() if state.may_replace == PROPOSED and state.content}
        proposals = self.run(self.memory.service.proposals(self.memory.slug))
        assert {each.item.id for each in proposals if each.old is None} == facts
        assert facts.isdisjoint(each.id for each in self.run(self.memory.service.listing(self.memory.slug)))

    @invariant()
    def a_closed_item_is_hidden_and_its_chain_ends(self) -> None:
        items = self.run(self.rows())
        for item_id, state in items.items():
            assert not (state.visible and state.replaced_by)
            chain = [item_id]
            while items[chain[-1]].replaced_by:
                chain.append(items[chain[-1]].replaced_by)
                assert chain[-1] not in chain[:-1]


class MemoryMachine(Machine):
    """Compares the rows with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.model = NaiveMemory()

    def act(self, work: Callable[[], Awaitable[object]], *, passes_over: bool = False) -> None:
        """Have something done, and learn from the rows, as a naive observer, what a new operation has changed."""

        async def observed() -> None:
            before, newest = await self.rows(), await self.newest()
            with suppress(ChorusError):
                await work()
            if await self.newest() > newest:
                self.model.observe(await self.newest(), before, await self.rows(), passes_over=passes_over)

        self.run(observed())

    async def newest(self) -> int:
        ((found,),) = await self.memory.sql(
            "SELECT COALESCE(MAX(number), 0) FROM operations WHERE kind IN ('memory', 'flash')"
        )
        return int(found)

    @initialize(contents=st.lists(st.sampled_from(CONTENTS), min_size=2, max_size=2, unique=True))
    def begin(self, contents: list[str]) -> None:
        for content in contents:
            self.act(partial(self.memory.add, content))

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        # Rules of their own would be chosen alike, and some not at all in a story.
        data.draw(st.sampled_from(ACTS), "act")(self, data)

    def add(self, data: st.DataObject) -> None:
        content, item_type = data.draw(st.sampled_from(CONTENTS)), data.draw(st.sampled_from(TYPES))
        self.act(lambda: self.memory.add(content, item_type))
        assert any(state.visible and state.content == content for state in self.run(self.rows()).values())

    def edit(self, data: st.DataObject) -> None:
        item_id, content = self.some(data), data.draw(st.sampled_from(CONTENTS))

        async def edited() -> None:
            await self.memory.service.edit(await self.memory.item(item_id), content)

        self.act(edited)

    def change(self, data: st.DataObject) -> None:
        change = getattr(self.memory.service, data.draw(st.sampled_from(("pin", "unpin", "forget"))))
        item_id = self.some(data)
        self.act(lambda: change(self.memory.slug, item_id))

    def replace(self, data: st.DataObject) -> None:
        item_id, content = self.some(data), data.draw(st.sampled_from(CONTENTS))
        self.act(lambda: self.memory.service.replace(self.memory.slug, item_id, content))

    def propose(self, data: st.DataObject) -> None:
        contents = data.draw(st.lists(st.sampled_from(CONTENTS), min_size=1, max_size=3, unique=True))
        self.act(lambda: self.proposed(*contents))

    def settle(self, data: st.DataObject) -> None:
        accepts = data.draw(st.booleans())
        self.act(lambda: self.memory.service.settle(self.memory.slug, None, accepts=accepts))

    def flash(self, _data: st.DataObject) -> None:
        self.act(self.memory.flash, passes_over=True)

    def restore(self, data: st.DataObject) -> None:
        checkpoint = data.draw(st.integers(1, 2))
        self.act(lambda: self.memory.service.restore(self.memory.slug, checkpoint))

    def let_time_pass(self, data: st.DataObject) -> None:
        self.memory.world.clock.advance(timedelta(days=data.draw(st.sampled_from((30, 1)))))
        self.run(self.memory.service.renew_if_due(self.memory.slug))

    def undo(self, _data: st.DataObject) -> None:
        expected = self.model.undo(None)
        said = self.run(self.memory.told("/undo"))
        assert said.startswith("Undone") == expected, said

    def redo(self, _data: st.DataObject) -> None:
        said = self.run(self.memory.told("/redo"))
        if said.startswith("Redone"):
            assert self.model.redo(self.model.undone[-1]), said

    def undo_by_number(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.model.operations)))
        expected = self.model.undo(number)
        said = self.run(self.memory.told(f"/context undo {number}"))
        assert said.startswith("Undone") == expected, said

    def redo_by_number(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.model.operations)))
        expected = self.model.redo(number)
        said = self.run(self.memory.told(f"/context redo {number}"))
        assert said.startswith("Redone") == expected, said

    def some(self, data: st.DataObject) -> int:
        return int(data.draw(st.sampled_from(sorted(self.model.items))))

    @invariant()
    def the_rows_are_as_expected(self) -> None:
        assert self.run(self.rows()) == self.model.items

    @invariant()
    def every_visible_item_is_found_by_its_words_and_no_other(self) -> None:
        items = {item_id: state.content for item_id, state in self.model.items.items()}
        if SERVER not in os.environ:
            found = self.memory.sql("SELECT rowid, replace(content, char(31), '') FROM context_item_words")
            assert dict(self.run(found)) == items
        every, listed = Texts(ITEMS, "context_items", "TRUE", {}), [*items.items()]
        wanted = [Wanted([Term(content)]) for content in {*items.values()}]
        assert self.run(self.store.read(lambda c: [*index_of(c, ITEMS).ids(wanted, every)])) == [
            matching(listed, each, TOKENIZER) for each in wanted
        ]


WEIGHTS: dict[Callable[[MemoryMachine, st.DataObject], None], int] = {
    MemoryMachine.add: 4,
    MemoryMachine.edit: 6,
    MemoryMachine.change: 8,
    MemoryMachine.replace: 6,
    MemoryMachine.propose: 4,
    MemoryMachine.settle: 5,
    MemoryMachine.flash: 2,
    MemoryMachine.restore: 2,
    MemoryMachine.let_time_pass: 3,
    MemoryMachine.undo: 5,
    MemoryMachine.redo: 4,
    MemoryMachine.undo_by_number: 6,
    MemoryMachine.redo_by_number: 3,
}
ACTS = tuple(act for act, weight in WEIGHTS.items() for _ in range(weight))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stories", [10, pytest.param(30, marks=pytest.mark.slow)])
def test_the_memory_is_as_expected_whatever_is_done_and_undone(stories: int) -> None:
    few = settings(max_examples=stories, stateful_step_count=50, deadline=None)
    run_state_machine_as_test(MemoryMachine, settings=few)


LINES = (
    "/memory forget {item}",
    "/memory pin {item}",
    "/memory replace {item} {fact}",
    "/memory replace {item} {fact}",
    "/memory replace {item} {earlier}",
    "/remember {fact}",
    "/remember {fact}",
    "/remember {fact}",
    "/memory inbox accept all",
    "/memory inbox drop all",
    "/memory flash --force",
    "/purge search {purged}",
    "/undo",
    "/redo",
    "/context undo {operation}",
    "/context redo {operation}",
)


class ChainMachine(Machine):
    """Has a user act on facts, each of which has a number as a word of its own, and talk about them."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = 0

    async def carried_out(self, line: str) -> None:
        """Carry out a command and answer yes; a refusal is as good."""
        with suppress(ChorusError):
            answer = await self.memory.world.carry_out(line)
            if isinstance(answer, Question):
                await answer.confirmed()

    def new_fact(self) -> str:
        self.facts += 1
        return f"the boat lies in berth{self.facts}"

    @initialize()
    def begin(self) -> None:
        self.run(self.carried_out(f"/remember {self.new_fact()}"))

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(LINES))
        items = self.run(self.rows())
        (operations,) = self.run(self.memory.sql("SELECT MAX(number) FROM operations"))[0]
        earlier = data.draw(st.integers(1, self.facts))
        words = line.format(
            item=data.draw(st.sampled_from(sorted(items))),
            fact=self.new_fact() if "{fact}" in line else "",
            earlier=f"the boat lies in berth{earlier}",
            purged=f"berth{earlier}",
            operation=data.draw(st.integers(1, operations)),
        )
        self.run(self.carried_out(words))

    @rule()
    def propose(self) -> None:
        self.run(self.proposed(self.new_fact(), self.new_fact()))

    @rule(hours=st.sampled_from((1, 6)))
    def wait(self, hours: int) -> None:
        # The newest messages stay in the window, with items in their preambles; older items become WARM.
        self.memory.world.clock.advance(timedelta(hours=hours))

    @rule(data=st.data())
    def talk(self, data: st.DataObject) -> None:
        named = data.draw(st.lists(st.sampled_from(sorted(self.run(self.rows()))), max_size=4))
        self.run(self.memory.world.say(f"What of {' and '.join(f'#{id_}' for id_ in named)}?"))
        items = self.run(self.rows())
        hidden = {each.content.split()[-1] for each in items.values() if each.content and not each.visible}
        known = {each.content.split()[-1] for each in items.values() if each.visible}
        sent = re.findall(r"berth[0-9]+", str(self.memory.world.model.requests[-1].messages))
        assert not (hidden - known).intersection(sent)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stories", [15, pytest.param(40, marks=pytest.mark.slow)])
def test_chains_of_facts_hold_whatever_is_done_and_undone(stories: int) -> None:
    few = settings(max_examples=stories, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(ChainMachine, settings=few)
