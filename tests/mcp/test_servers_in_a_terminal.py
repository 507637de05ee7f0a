"""Servers of tools in the real program: asked about, called, allowed for always, and ended with it."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from chorus_cli.core.json import jsonc
from chorus_cli.turns.service.reply import NOT_RUN
from tests.loopback_providers import CallingProvider, split_call
from tests.terminal.command import await_death
from tests.terminal.driver import NEW_INTERPRETER, PROMPT, Home, Terminal

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed")

SMALL = Path(__file__).with_name("small_server.py")


@pytest.fixture
def talking(talking: Home) -> Home:
    """A home with the small server, whose programs talk to the provider."""
    configure(talking, "")
    return talking


def configure(home: Home, fault: str, wait_seconds: int = 60, **further: object) -> None:
    home.path.mkdir(parents=True, exist_ok=True)
    server = {"command": sys.executable, "args": [str(SMALL), fault, str(home.path)], **further}
    config = {"mcpServers": {"small": server}, "defaults": {"mcp_wait": wait_seconds}}
    (home.path / "config.jsonc").write_text(json.dumps(config), encoding="utf-8")


def allowed(home: Home) -> list[str]:
    """Return the tools that the persona is allowed for always."""
    text = (home.path / "personas" / "chorus" / "system.jsonc").read_text(encoding="utf-8")
    entries = jsonc.parse_object(text).values.get("mcp_allow")
    return [*entries] if isinstance(entries, dict) else []


def servers(home: Home) -> list[int]:
    """Return the processes of the small server of a home, and of the watcher that started it."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and f"\0{home.path}".encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def asked_to_ping(chat: Terminal, provider: CallingProvider, text: str) -> None:
    provider.call(*split_call("small__ping", {"loud": True}))
    provider.say(f"{text}: pong.")
    chat.say(text)


def test_a_tool_is_asked_about_allowed_for_always_and_taken_back(talking: Home, provider: CallingProvider) -> None:
    with talking.chat() as chat:
        asked_to_ping(chat, provider, "First")
        chat.await_text("The model wants to run ping of the server small:\n  loud: true")
        chat.say("perhaps")
        chat.await_text('"perhaps" is not an answer')
        chat.say("a")
        chat.await_text("small.ping now runs without asking; /tools ask small.ping ends that.")
        chat.await_text("First: pong.")
        chat.await_line(PROMPT)
        assert allowed(talking) == ["small.ping"]
        asked_to_ping(chat, provider, "Second")
        chat.await_text("Second: pong.")
        chat.await_line(PROMPT)
        assert (chat.words().count("wants to run"), chat.words().count("Run it?")) == (1, 2)
        chat.ask("/undo list", 'permission "small.ping" added')
        chat.ask("/undo 2", "Undone")
        assert allowed(talking) == []
        asked_to_ping(chat, provider, "Third")
        chat.await_text("wants to run", times=2)
        chat.say("t")
        chat.await_text("Why not? The model gets your answer.")
        chat.say("No noise.")
        chat.await_text("Third: pong.")
        chat.await_line(PROMPT)
        assert provider.asked[-1]["messages"][-1]["content"].endswith("The user says: No noise.")
        running = servers(talking)
        assert running
        chat.leave()
    for process in running:
        await_death(process)
    declared = [tool["function"]["name"] for tool in provider.asked[0]["tools"]]
    assert declared[-2:] == ["small__ping", "small__environment"]


def test_what_was_allowed_for_always_runs_after_a_restart(talking: Home, provider: CallingProvider) -> None:
    with talking.chat() as chat:
        asked_to_ping(chat, provider, "First")
        chat.await_text("wants to run")
        chat.say("a")
        chat.await_text("First: pong.")
        chat.leave()
    provider.call(*split_call("small__ping", {}))
    provider.say("Second: pong.")
    assert talking.run("ask", "-c", "Second").output.strip() == "Second: pong."
    assert provider.asked[-1]["messages"][-1]["content"] == "pong"


def test_a_question_that_is_higher_than_the_screen_is_shown_whole(talking: Home, provider: CallingProvider) -> None:
    provider.call(*split_call("small__ping", {"first": "begins", "middle": "x " * 3000, "last": "ends"}))
    provider.say("So be it.")
    with talking.chat() as chat:
        chat.say("Ping.")
        chat.await_text("Run it?")
        assert chat.words().count("x") >= 3000
        assert 'first: "begins"' in chat.words()
        assert 'last: "ends"' in chat.words()
        chat.say("n")
        chat.await_text("So be it.")


def test_ctrl_c_at_the_question_stops_the_call_and_not_the_chat(talking: Home, provider: CallingProvider) -> None:
    with talking.chat() as chat:
        asked_to_ping(chat, provider, "First")
        chat.await_text("wants to run")
        chat.stop()
        chat.ask("Are you there?", "First: pong.")
    assert NOT_RUN in [message["content"] for message in provider.asked[-1]["messages"]]


def test_ctrl_c_in_a_call_stops_the_call_and_not_the_chat(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "never answers", trust=True)
    with talking.chat() as chat:
        asked_to_ping(chat, provider, "First")
        chat.await_text("small.ping(loud true)")
        chat.stop()
        chat.ask("/tools", "small")
        assert "connected" in chat.words()


def test_a_shell_lists_the_tools(talking: Home) -> None:
    outcome = talking.run("tools")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.output.splitlines()] == [
        "Tool",
        "built",
        "small",
        "ping",
        "environment",
    ]
    told = json.loads(talking.run("tools", "--json").output)
    assert {"server": "small", "state": "connected"} in told["servers"]
    assert "ping" in {tool["tool"] for tool in told["tools"] if tool["server"] == "small"}


def test_a_chat_that_is_left_at_once_starts_no_server_and_says_nothing(talking: Home) -> None:
    with talking.chat(**NEW_INTERPRETER) as chat:
        chat.leave()
        assert "never awaited" not in chat.words()
    assert servers(talking) == []
    assert not (talking.path / "state" / "chorus.log").exists()


def test_ask_runs_only_what_is_allowed_and_gives_a_server_no_key(talking: Home, provider: CallingProvider) -> None:
    provider.say("So be it.")
    outcome = talking.run("ask", "-c", "Which variables are there?")
    assert (outcome.code, outcome.output.strip()) == (0, "So be it.")
    assert "small__environment" not in json.dumps(provider.asked[-1]["tools"])
    assert not (talking.path / "state" / "chorus.log").exists()
    configure(talking, "", trust=True)
    provider.call(*split_call("small__environment", {}))
    provider.say("So be it.")
    assert talking.run("ask", "-c", "And now?").code == 0
    names = provider.asked[-1]["messages"][-1]["content"].splitlines()
    assert "PATH" in names
    assert not [name for name in names if "KEY" in name or "OPENAI" in name]


def test_ask_goes_on_without_a_server_that_is_late_and_says_so(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "silent", wait_seconds=1, trust=True)
    provider.say("So be it.")
    outcome = talking.run("ask", "-c", "Are you there?")
    assert (outcome.code, outcome.output.strip()) == (0, "So be it.")
    late = "The server small is still connecting; /tools shows when it is connected."
    assert outcome.errors.splitlines()[-1] == late


def test_the_model_sees_the_picture_of_a_result(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "pictures", trust=True)
    provider.call(*split_call("small__ping", {}))
    provider.say("It is red.")
    assert talking.run("ask", "-c", "What do you see?").output.strip() == "It is red."
    result, shown = provider.asked[-1]["messages"][-2:]
    assert result["content"] == "pong\n[attachment: small.ping.png 70 bytes]"
    assert [part["type"] for part in shown["content"]] == ["image_url", "text"]


def test_a_killed_chat_leaves_no_server(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "never answers")
    with talking.chat(**NEW_INTERPRETER) as chat:
        asked_to_ping(chat, provider, "First")
        chat.await_text("wants to run")
        chat.say("o")
        chat.await_text("small.ping(")
        running = servers(talking)
        assert running
        chat.kill(signal.SIGKILL)
    for process in running:
        await_death(process)


def test_a_prompt_is_completed_shown_and_sent(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "offers")
    with talking.chat() as chat:
        chat.ask("/tools", "/small:review")
        assert "@small:" in chat.words()
        chat.await_line(PROMPT)
        chat.type("/small:g")
        chat.await_text("Say hello.")
        chat.press("tab")
        chat.await_line(f"{PROMPT} /small:greet")
        provider.say("Good day!")
        chat.say("")
        chat.await_text("[A server's prompt: small:greet]")
        chat.await_text("Good day!")
        chat.await_line(PROMPT)
        chat.ask("/small:review", "/small:review needs file, for example: /small:review file=…")
        provider.say("It is fine.")
        chat.ask("/small:review main.py style=in one word", "It is fine.")
    words = [message["content"] for message in provider.asked[-1]["messages"] if message["role"] == "user"]
    assert words[-1].endswith('Review {"file": "main.py", "style": "in one word"}.\x1b[2J')
    assert [part["type"] for part in words[-2]] == ["image_url", "text"]
    assert words[-2][1]["text"].endswith("user: Say hello.\n\nassistant: Hello.")
    content, greeting = talking.sql("SELECT content FROM messages WHERE role = 'user' ORDER BY id DESC")
    assert content.startswith("[A server's prompt: small:review]\n\n")
    assert greeting.startswith("[A server's prompt: small:greet]\n\n")


def test_a_resource_is_attached_also_of_a_server_that_still_connects(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "slow")
    with talking.chat() as chat:
        provider.say("It is heavy.")
        chat.ask("What does @small:note://1 say?", "It is heavy.")
        chat.await_line(PROMPT)
        chat.type("Compare @small:n")
        chat.await_text("About")
        chat.press("tab", "tab")
        chat.await_line(f"{PROMPT} Compare @small:note://{{number}}")
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.say("What is @small:nowhere://1?")
        chat.await_text("gave no result: no such method. Nothing was sent.")
        chat.await_line(f"{PROMPT} What is @small:nowhere://1?")
        # While the prompt is not back, Ctrl-C is a signal.
        chat.await_idle()
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.say("What is @small:note://never?")
        chat.await_text("press Ctrl-C to stop")
        chat.press("ctrl-c")
        chat.await_line(f"{PROMPT} What is @small:note://never?")
    assert "Gold is heavy." in str(provider.asked[-1]["messages"][-1]["content"])
    (attached,) = (json.loads(text) for text in talking.sql("SELECT attachments FROM messages WHERE role = 'user'"))
    assert [(each["name"], each["server"]) for each in attached] == [("small:note://1", "small")]


def test_ask_takes_prompts_and_resources(talking: Home, provider: CallingProvider) -> None:
    configure(talking, "offers")
    provider.say("It is heavy.")
    outcome = talking.run("ask", "What does @small:note://1 say?")
    assert (outcome.code, outcome.output.strip()) == (0, "It is heavy.")
    assert "Gold is heavy." in str(provider.asked[-1]["messages"][-1]["content"])
    provider.say("It is fine.")
    outcome = talking.run("ask", "/small:review", "main.py")
    assert (outcome.code, outcome.output.strip()) == (0, "It is fine.")
    assert 'Review {"file": "main.py"}.' in outcome.errors
    assert "\x1b" not in outcome.errors
    outcome = talking.run("ask", "What is @small:nowhere://1?")
    assert (outcome.code, outcome.output) == (1, "")
    assert "gave no result" in outcome.errors
