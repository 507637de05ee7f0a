"""``/copy`` and ``/export``: the last reply to the clipboard, a conversation to a file."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import Text
from chorus_cli.models.rules.events import TextDelta
from tests.world import World


async def test_the_last_reply_in_context_is_copied_word_for_word(world: World) -> None:
    world.model.say("first")
    await world.say("One")
    world.model.enqueue(TextDelta("# Plan\n\n\x1b[31mred\n"), ModelError("broke"))
    await world.say("Two")
    world.model.enqueue(ModelError("nothing came"))
    await world.say("Three")
    assert (await world.told("/copy")).startswith("Copied the last reply (17 characters) by a test: ")
    assert world.copied == ["# Plan\n\n\x1b[31mred\n"]


async def test_without_a_reply_in_context_nothing_is_copied(world: World) -> None:
    await world.say("One")
    world.clock.advance(timedelta(hours=9))
    assert await world.told("/copy") == "There is nothing to copy: no reply is in context."
    assert world.copied == []


TWO_BLOCKS = "First:\n\n```sh\nls -l\n```\n\nthen\n\n~~~\nprint(1)\nprint(2)\n~~~\nDone."


@pytest.mark.parametrize(
    ("line", "copied"),
    [("/copy code", "print(1)\nprint(2)\n"), ("/copy code 1", "ls -l\n"), ("/copy CODE #2", "print(1)\nprint(2)\n")],
)
async def test_a_code_block_of_the_last_reply_with_code_is_copied(world: World, line: str, copied: str) -> None:
    for reply in ("```\nolder\n```", TWO_BLOCKS, "No code here."):
        world.model.say(reply)
        await world.say("Go on")
    assert (await world.told(line)).startswith("Copied code block ")
    assert world.copied == [copied]


@pytest.mark.parametrize(
    ("reply", "line", "refusal"),
    [
        ("No code.", "/copy code", "There is nothing to copy: no reply in context has a code block."),
        (TWO_BLOCKS, "/copy code 3", "The last reply with code has 2 code blocks; there is no #3."),
        (TWO_BLOCKS, "/copy code x", "'x' is not a whole number above 0, such as 3 or #3."),
        (TWO_BLOCKS, "/copy it", "/copy takes nothing, or code and a number, such as /copy code 2."),
    ],
)
async def test_a_code_block_that_is_not_there_is_not_copied(world: World, reply: str, line: str, refusal: str) -> None:
    world.model.say(reply)
    await world.say("Go on")
    assert await world.told(line) == refusal
    assert world.copied == []


@pytest.fixture
async def talk(world: World) -> World:
    """A turn before /new and a turn since."""
    await world.say("Old")
    await world.told("/new")
    world.model.say("Through *Moria*.")
    await world.say("Which way?")
    return world


async def test_what_is_in_context_is_written_as_markdown(talk: World) -> None:
    path = talk.folder / "way.md"
    assert await talk.told(f"/export {path}") == f"Exported the context, 2 messages, to {path}"
    stamp = f"{talk.clock.now().astimezone():%Y-%m-%d %H:%M:%S}"
    assert path.read_text(encoding="utf-8") == (
        f"# chorus\n\nThread #1, what was in context: 2 messages, exported on {stamp}.\n\n"
        f"## Human, {stamp}\n\nWhich way?\n\n## chorus, {stamp}\n\nThrough *Moria*.\n"
    )
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("whole", ["", " all"])
async def test_a_reply_that_failed_without_a_word_is_left_out(world: World, whole: str) -> None:
    world.model.enqueue(ModelError("It is down."))
    await world.say("Which way?")
    path = world.folder / "way.json"
    assert ", 1 message, to " in await world.told(f"/export {path}{whole}")
    assert [message["content"] for message in json.loads(path.read_text())["messages"]] == ["Which way?"]


async def test_all_of_the_thread_is_written_with_the_clears(talk: World) -> None:
    path = talk.folder / "all of it.MD"
    assert "Exported the whole thread, 4 messages, to " in await talk.told(f"/export {path} all")
    text = path.read_text(encoding="utf-8")
    assert text.index("Old") < text.index("[CONTEXT_CLEARED]") < text.index("Which way?")


async def test_json_holds_the_messages_as_the_log_does(talk: World) -> None:
    path = talk.folder / "way.json"
    await talk.told(f"/export {path}")
    value = json.loads(path.read_text(encoding="utf-8"))
    assert (value["persona"], value["thread"], value["whole_thread"]) == ("chorus", 1, False)
    assert [(row["id"], row["role"], row["content"]) for row in value["messages"]] == [
        (3, "user", "Which way?"),
        (4, "assistant", "Through *Moria*."),
    ]


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("{}", "chorus_2026-02-12_*.md"),
        ("{}/notes", "notes.md"),
        ('"{}/the way.md"', "the way.md"),
        ("'{}/the way.md' all", "the way.md"),
        ("{}/the\\ way.md", "the way.md"),
        ("~/mine.md", "mine.md"),
    ],
)
async def test_a_path_is_read_as_it_is_typed(
    talk: World, monkeypatch: pytest.MonkeyPatch, typed: str, written: str
) -> None:
    monkeypatch.setenv("HOME", str(talk.folder))
    await talk.told(f"/export {typed.format(talk.folder)}")
    assert len([*talk.folder.glob(written)]) == 1


async def test_without_a_file_it_is_written_to_the_present_folder(
    talk: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    name = f"chorus_{talk.clock.now():%Y-%m-%d_%H%M}.md"
    assert str(here / name) in await talk.told("/export")
    assert (await talk.asked_back("/export all")).text == f"{name} already exists. Overwrite it?"
    await talk.told("/export way.json all")
    assert sorted(path.name for path in here.iterdir()) == [name, "way.json"]


@pytest.mark.parametrize("before", ["precious", ""])
async def test_a_file_or_link_that_exists_is_written_to_only_after_a_yes(talk: World, before: str) -> None:
    path, target = talk.folder / "way.md", talk.folder / "target.md"
    path.symlink_to(target)
    if before:
        target.write_text(before)
    question = await talk.asked_back(f"/export {path}")
    assert question.text == f"{path} already exists. Overwrite it?"
    assert "nothing was written" in question.declined.text
    assert (target.read_text() if target.exists() else "") == before
    assert isinstance(await question.confirmed(), Text)
    assert path.is_symlink()
    assert "Which way?" in target.read_text()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("{}/way.pdf", "way.pdf cannot end in .pdf: write .json, .markdown or .md."),
        ("{}/none/way.md", "cannot be written: No such file or directory. Nothing was written."),
        ("{}/pipe.md", "is not a regular file, so nothing was written."),
        ("{}/" + "x" * 300, "cannot be written: File name too long."),
        ("{}/a\0b.md", "b.md cannot be written: "),
        ("~nobody-of-that-name/x.md", "There is no home folder for ~nobody-of-that-name/x.md"),
    ],
)
async def test_what_cannot_be_written_gets_a_sentence(talk: World, path: str, sentence: str) -> None:
    os.mkfifo(talk.folder / "pipe.md")
    before = set(talk.folder.iterdir())
    assert sentence in await talk.told(f"/export {path.format(talk.folder)}")
    assert set(talk.folder.iterdir()) == before


async def test_nothing_is_written_when_there_is_nothing(world: World) -> None:
    path = world.folder / "x.md"
    assert "/export FILE all writes everything" in await world.told(f"/export {path}")
    assert (await world.told(f"/export {path} all")).startswith("There is nothing to write")
    assert not path.exists()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder, which is the home folder too, with files, folders and links of many names."""
    here = tmp_path / "here"
    for folder in ("Notes/deep", ".hidden", "my talks"):
        (here / folder).mkdir(parents=True)
    for name in ("way.md", "Way.JSON", "way.pdf", "way", "all.md", ".secret.md", "~x.md", " y.md", "line\nbreak.md"):
        (here / name).touch()
    for path in ("Notes/.n.md", "Notes/~n.md", "my talks/a  b.md"):
        (here / path).touch()
    (here / "lost.md").symlink_to("nowhere.md")
    (here / "loop").symlink_to("loop")
    (here / "link").symlink_to("Notes")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(here))
    return here


NOTHING_OFFERED = (
    *("way.p", "way.md all ", "way.md x", "~x", "~nobody-of-that-name/", "none/", "way.md/", "a\0/"),
    "x" * 300 + "/",
)


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("", ["all", "all.md", "link/", "lost.md", "my talks/", "Notes/", "Way.JSON", "way.md"]),
        ("WA", ["Way.JSON", "way.md"]),
        ("Way.j", ["Way.JSON"]),
        ("a", ["all", "all.md"]),
        ("way.md ", ["way.md all"]),
        ("way.md AL", ["way.md all"]),
        (".", [".hidden/", ".secret.md"]),
        ("no", ["Notes/"]),
        ("Notes/", ["Notes/deep/"]),
        ("Notes/.", ["Notes/.n.md"]),
        ("Notes/~", ["Notes/~n.md"]),
        ("link/d", ["link/deep/"]),
        ("my", ["my talks/"]),
        ("my t", ["my talks/"]),
        ("my a", ["my all"]),
        ("my talks/a  ", ["my talks/a  all", "my talks/a  b.md"]),
        ("~", ["~/"]),
        ("~/way.m", ["~/way.md"]),
        ("~/Notes/", ["~/Notes/deep/"]),
        *((each, []) for each in NOTHING_OFFERED),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_file_and_all_are_completed_as_the_command_reads_them(world: World, typed: str, texts: list[str]) -> None:
    assert offered(world, typed) == texts


def test_of_a_folder_that_holds_very_much_only_the_beginning_is_offered(world: World, files: Path) -> None:
    for number in range(300):
        (files / "Notes" / f"n{number:03}.md").touch()
    assert offered(world, "Notes/n") == [f"Notes/n{number:03}.md" for number in range(100)]
    assert offered(world, f"{files}/Notes/n12") == [f"{files}/Notes/n12{number}.md" for number in range(10)]


def offered(world: World, typed: str) -> list[str]:
    found = completions(world.services.registry, world.services, f"/export {typed}")
    assert found.start == len("/export ")
    return [each.text for each in found.candidates]


OF_A_FOLDER = "--persona and --format need --all DIR; a FILE gets this conversation, as .md or .json."


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("--all {}", "--all takes only a folder; leave the file out."),
        ("--persona chorus", OF_A_FOLDER),
        ("--format jsonl", OF_A_FOLDER),
    ],
)
async def test_a_file_and_the_options_of_a_whole_export_exclude_each_other(
    talk: World, tmp_path: Path, options: str, refusal: str
) -> None:
    out, file = tmp_path / "out", tmp_path / "talk.md"
    assert await talk.told(f"/export {file} {options.format(out)}") == refusal
    assert (out.exists(), file.exists()) == (False, False)
