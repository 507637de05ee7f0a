"""Facts are replaced, forgotten, purged, undone, redone in any order: chains end, and no request has a closed fact."""

from __future__ import annotations

import asyncio
import re
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chorus_cli.core.errors import ChorusError
from chorus_cli.framework.replies import Question
from tests.fakes import FakeClock, ScriptedModel
from tests.memory.remembered import Remembering
from tests.storage.database import QuickStore
from tests.world import built

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


class ChainMachine(RuleBasedStateMachine):
    """Has a user act on facts, each of which has a number as a word of its own, and talk about them."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.facts = 0
        self.memory = self.run(self.opened())

    async def opened(self) -> Remembering:
        folder = Path(self.folder.name)
        self.store = QuickStore(folder / "chorus.db")
        await self.store.open()
        return Remembering(await built(folder, self.store, FakeClock(), ScriptedModel(), 10_000))

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()

    async def rows(self) -> dict[int, tuple[bool, int, str]]:
        found = await self.memory.sql("SELECT id, forgotten_by IS NULL, replaced_by, content FROM context_items")
        return {id_: (bool(is_open), replaced_by, content) for id_, is_open, replaced_by, content in found}

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

    @rule(hours=st.sampled_from((1, 6)))
    def wait(self, hours: int) -> None:
        # The newest messages stay in the window, with items in their preambles; older items become WARM.
        self.memory.world.clock.advance(timedelta(hours=hours))

    @rule(data=st.data())
    def talk(self, data: st.DataObject) -> None:
        named = data.draw(st.lists(st.sampled_from(sorted(self.run(self.rows()))), max_size=4))
        self.run(self.memory.world.say(f"What of {' and '.join(f'#{id_}' for id_ in named)}?"))
        items = self.run(self.rows())
        hidden = {content.split()[-1] for is_open, _, content in items.values() if content and not is_open}
        known = {content.split()[-1] for is_open, _, content in items.values() if is_open}
        sent = re.findall(r"berth[0-9]+", str(self.memory.world.model.requests[-1].messages))
        assert not (hidden - known).intersection(sent)

    @invariant()
    def every_open_item_is_in_no_chains_middle_and_every_chain_ends(self) -> None:
        items = self.run(self.rows())
        for id_, (is_open, replaced_by, _) in items.items():
            assert not (is_open and replaced_by)
            chain = [id_]
            while items[chain[-1]][1]:
                chain.append(items[chain[-1]][1])
                assert chain[-1] not in chain[:-1]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stories", [15, pytest.param(40, marks=pytest.mark.slow)])
def test_chains_of_facts_hold_whatever_is_done_and_undone(stories: int) -> None:
    few = settings(max_examples=stories, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(ChainMachine, settings=few)
