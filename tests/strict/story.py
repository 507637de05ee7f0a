"""A talk of many turns with two models by turns, and what everybody may do to it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from chorus_cli.mcp.toolbox import MOST_CALLS
from chorus_cli.turns.service.reply import MOST_ROUNDS
from tests.strict.providers import Strict
from tests.strict.server import Call, Held, Reply, StrictServer
from tests.terminal.editors import changing


class Player(Protocol):
    """How a story is played, through the services or in the real program: each act, up to the end of its turn."""

    async def say(self, text: str, answer: str) -> None: ...
    async def retry(self, answer: str, model: str | None = None) -> None: ...
    async def stop(self, text: str, actor: Actor, held: Held) -> None: ...
    async def stop_at_work(self, text: str) -> None: ...
    def slow_call(self) -> tuple[str, dict[str, object]]: ...
    async def command(self, line: str, told: str) -> str: ...
    async def edit(self, script: str) -> None: ...
    async def restart(self) -> None: ...


@dataclass(slots=True)
class Actor:
    """A model of the story; ``newest`` is the place of the request that its next one must begin as."""

    strict: Strict
    server: StrictServer
    newest: int | None = None
    ids: int = 0

    def call(self, name: str, **arguments: object) -> Call:
        """Return a call under a new id."""
        self.ids += 1
        return Call(name, arguments, self.strict.id_of(self.ids))

    def same_call(self, call: Call) -> Call:
        """Return a call once more, under the same id if the provider may do that."""
        return call if self.strict.repeats_ids else self.call(call.name, **call.arguments)

    def search(self, query: str) -> Call:
        return self.call("search_history", query=query)


@dataclass(slots=True)
class Story:
    """The talk. Each request must begin as the last one, but for thoughts that go within their turn only."""

    player: Player
    main: Actor
    other: Actor
    speaker: Actor = field(init=False)

    def __post_init__(self) -> None:
        self.speaker = self.main

    async def say(self, question: str, *replies: Reply) -> None:
        """Have a question answered in several rounds."""
        begun = self._will(replies)
        await self.player.say(question, replies[-1].text)
        self._check_prefixes(begun)

    async def act(self, line: str, told: str) -> str:
        """Carry out a command that changes the context, so that requests begin anew."""
        self.main.newest = self.other.newest = None
        return await self.player.command(line, told)

    async def edit(self, script: str) -> None:
        self.main.newest = self.other.newest = None
        await self.player.edit(script)

    async def switch_to(self, actor: Actor) -> None:
        await self.player.command(f"/model {actor.strict.model}", f"Model: {actor.strict.model}")
        self.speaker = actor

    async def play(self) -> None:
        """Play all of it."""
        await self._play_rounds()
        await self._play_interruptions()
        await self._play_acts()
        await self._play_with_another_model()
        await self._play_elsewhere()
        for actor in (self.main, self.other):
            assert actor.server.refused == []
            assert {actor.strict.misfit(body) for body in actor.server.bodies} == {""}

    async def _play_rounds(self) -> None:
        """Play single, parallel and repeated calls, with thoughts and without."""
        main = self.main
        await self.say("What is a ring?", Reply("A ring is a band."))
        await self.say("Where is it?", Reply(calls=(main.search("ring"),)), Reply("It lies in the river."))
        kept = main.call("remember", type="TASK", content="Look for the ring.")
        await self.say(
            "Look it up.",
            Reply("Let me look.", (main.search("gold"), main.search("river"))),
            Reply(calls=(kept,)),
            Reply("Nobody said more.", thinks=False),
        )
        twice = main.search("silver")
        await self.say(
            "Once more.",
            Reply(calls=(twice, main.same_call(twice))),
            Reply("And again.", (main.same_call(twice),)),
            Reply("Still nothing."),
        )

    async def _play_interruptions(self) -> None:
        main = self.main
        name, arguments = self.player.slow_call()
        self._will((Reply("I will try.", (main.search("slow"), main.call(name, **arguments))),))
        await self.player.stop_at_work("Take your time.")
        await self.say("Are you there?", Reply("I was stopped."))
        main.newest = len(main.server.asked) - 1
        self._will((Reply("Never said.", held=Held.THINKING),))
        await self.player.stop("Think hard.", main, Held.THINKING)
        self._will((Reply("Hardly said.", held=Held.SPEAKING),))
        await self.player.stop("Speak up.", main, Held.SPEAKING)
        await self.say("Still there?", Reply(calls=(main.search("there"),)), Reply("I am here."))

    async def _play_acts(self) -> None:
        """Play a retry, an undo, and two edits of the same turn."""
        main = self.main
        begun = self._will((Reply("Asked again.", (main.search("again"),)), Reply("I am here again.")), anew=True)
        await self.player.retry("I am here again.")
        self._check_prefixes(begun)
        self.speaker = self.other
        self._will((Reply(calls=(self.other.search("once"),)), Reply("I am here for once.")))
        await self.player.retry("I am here for once.", self.other.strict.model)
        self.speaker, main.newest = main, None
        await self.say("And you?", Reply("I as well."))
        await self.act("/undo", "Undone:")
        await self.say("And now?", Reply("Before it.", (main.search("now"),)), Reply("Now as before."))
        await self.edit(reworded("Nobody said more.", "Nobody knows.", leaving_out="river"))
        await self.say("Who knows?", Reply(calls=(main.search("who"),)), Reply("Someone may."))
        await self.edit(reworded("Still nothing.", "Nothing yet."))
        await self.say("Well?", Reply("Nothing but this."))

    async def _play_with_another_model(self) -> None:
        main, other = self.main, self.other
        await self.switch_to(other)
        await self.say(
            "What do you say?",
            Reply("I look too.", (other.search("say"), other.search("too"))),
            Reply("I found nothing either."),
        )
        await self.say("Sure?", Reply("Quite sure."))
        await self.switch_to(main)
        await self.say("And you?", Reply(calls=(main.search("you"),)), Reply("I agree."))
        await self.switch_to(other)
        await self.say("You too?", Reply(calls=(other.search("two"),)), Reply("I always did."))
        await self.switch_to(main)

    async def _play_elsewhere(self) -> None:
        """Play a fork, a new process, a session that is restored, and a fold."""
        main = self.main
        await self.act("/thread fork", "Thread #2")
        await self.say("What is it here?", Reply(calls=(main.search("fork"),)), Reply("The same."))
        await self.act("/thread 1", "Thread #1")
        await self.say("And back?", Reply("Back again."))
        self.main.newest = None
        await self.player.restart()
        await self.say("Who are you?", Reply(calls=(main.search("who"),)), Reply("The one of before."))
        saved = await self.act("/context save the ring", "Saved session")
        await self.act("/new", "New conversation")
        await self.say("Hello?", Reply(calls=(main.search("new"),)), Reply("Hello."))
        await self.act(f"/context restore {saved.split()[2].rstrip(':')}", "Restored session")
        await self.say("Do you remember?", Reply(calls=(main.search("old"),)), Reply("All of it."))
        await self.act("/context compact", "messages summarised; the summary has")
        await self.say("In short?", Reply(calls=(main.search("short"),)), Reply("A ring was lost."))
        await self.act("/context undo", "Undone:")
        many = tuple(main.search(f"ring {number}") for number in range(MOST_CALLS + 1))
        await self.say("In full?", Reply("It takes long.", many), Reply("Too long."))
        rounds = [Reply(calls=(main.search(f"round {number}"),)) for number in range(MOST_ROUNDS + 1)]
        await self.say("Go on and on.", *rounds, Reply("No more."))

    def _will(self, replies: Sequence[Reply], *, anew: bool = False) -> int:
        """Have the next requests answered so; return how many there were, and where the last one is."""
        server = self.speaker.server
        if anew:
            self.speaker.newest = None
        first, *others = replies
        thinks_on = not self.speaker.strict.thinks_once
        server.will(first, *(each._replace(thinks=each.thinks and thinks_on) for each in others))
        return len(server.asked)

    def _check_prefixes(self, begun: int) -> None:
        actor, protocol = self.speaker, self.speaker.server.protocol
        assert actor.server.refused == []
        bodies = actor.server.bodies
        if actor.newest is not None:
            before, after = bodies[actor.newest], bodies[begun]
            keeps = not actor.strict.within_turn
            assert_begins(protocol.prompt(before, with_thoughts=keeps), protocol.prompt(after, with_thoughts=keeps))
        for number in range(begun + 1, len(bodies)):
            within = (protocol.prompt(body, with_thoughts=True) for body in bodies[number - 1 : number + 1])
            assert_begins(*within)
        actor.newest = len(bodies) - 1


def assert_begins(before: tuple[object, list[object]], after: tuple[object, list[object]]) -> None:
    """A request begins as the one before: the provider's cache knows all of that."""
    assert after[0] == before[0]
    assert after[1][: len(before[1])] == before[1]


def reworded(old: str, new: str, leaving_out: str = "nothing") -> str:
    """Return a script that rewords a reply, and maybe deletes the call that searches for a word."""
    return changing(
        # Results of searches repeat the reply in lines of their own.
        f"import re\n"
        f"text, found = re.subn('(] [Cc]horus: )' + re.escape({old!r}), lambda said: said[1] + {new!r}, text)\n"
        f"assert found == 1\n"
        f"blocks = text.split('\\n\\n')\n"
        f"text = '\\n\\n'.join(block for block in blocks if '\"query\": \"{leaving_out}\"' not in block)"
    )
