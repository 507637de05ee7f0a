"""The AGENTS.md of a folder: which file it is, what is asked and kept, and what a request has of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chorus_cli.context.files.project import Project
from chorus_cli.core.errors import MessageRefusedError
from chorus_cli.core.limits import PROJECT_FILE
from tests.world import World

ASK, ON, OFF = "ask", "on", "off"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A git tree with a folder in a folder; the second one is where Chorus runs."""
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    (tmp_path / "tree" / "src" / "deep").mkdir(parents=True)
    return tmp_path / "tree"


def written(path: Path, text: str = "Use tabs.") -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def name_sent(tree: Path) -> str:
    document = Project(tree / "src" / "deep").document(ON)
    return str(Path(document.name).relative_to(tree)) if document else ""


def test_the_nearest_file_up_to_the_root_of_the_git_tree_is_sent(tree: Path) -> None:
    written(tree.parent / "AGENTS.md")
    assert name_sent(tree) == ""
    written(tree / "CLAUDE.md")
    assert name_sent(tree) == "CLAUDE.md"
    written(tree / "src" / "deep" / "CLAUDE.md")
    assert name_sent(tree) == "src/deep/CLAUDE.md"
    written(tree / "AGENTS.md")
    assert name_sent(tree) == "AGENTS.md"
    written(tree / "src" / "AGENTS.md")
    assert name_sent(tree) == "src/AGENTS.md"


def test_without_a_git_tree_only_the_folder_itself_counts(tmp_path: Path) -> None:
    written(tmp_path / "AGENTS.md")
    (tmp_path / "below").mkdir()
    assert Project(tmp_path / "below").document(ON) is None
    assert Project(tmp_path).document(ON) is not None
    assert Project(None).document(ON) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a folder away")
@pytest.mark.parametrize("foreign", ["", "src"])
def test_no_file_above_a_folder_of_another_owner_is_sent(tree: Path, foreign: str) -> None:
    written(tree / "AGENTS.md")
    assert name_sent(tree) == "AGENTS.md"
    os.chown(tree / foreign, 65_534, 65_534)
    assert name_sent(tree) == ""
    written(tree / "src" / "deep" / "AGENTS.md")
    assert name_sent(tree) == "src/deep/AGENTS.md"


def test_the_answer_is_kept_by_path_until_it_is_forgotten(tree: Path, tmp_path: Path) -> None:
    path, kept = written(tree / "AGENTS.md"), tmp_path / "projects.json"
    question = f"This folder has a text for models: {path}. Send it with your messages?"
    first = Project(tree, kept)
    assert (first.question(ASK), first.document(ASK)) == (question, None)
    assert first.state(ASK) == f"{path} is not sent. Your next message asks about it."
    first.answer(is_sent=True)
    again = Project(tree / "src", kept)
    assert again.question(ASK) == ""
    assert again.document(ASK) == (str(path), "Use tabs.")
    assert again.state(ASK).startswith(f"{path} is sent with your messages. /set project off ends that")
    assert kept.stat().st_mode & 0o077 == 0
    again.answer(is_sent=False)
    refused = Project(tree, kept)
    assert (refused.question(ASK), refused.document(ASK)) == ("", None)
    assert refused.state(ASK) == f"{path} is not sent. /set project ask asks again."
    refused.forget()
    assert Project(tree, kept).question(ASK) == question


@pytest.mark.parametrize("text", ["", "[", "5", '{"a": 1}', '{"a": ["yes"]}'])
def test_answers_that_cannot_be_read_are_asked_for_again(tree: Path, tmp_path: Path, text: str) -> None:
    written(tree / "AGENTS.md")
    project = Project(tree, written(tmp_path / "projects.json", text))
    assert project.question(ASK)
    project.answer(is_sent=True)
    assert Project(tree, tmp_path / "projects.json").document(ASK)


def test_answers_of_two_chats_are_both_kept(tree: Path, tmp_path: Path) -> None:
    other, kept = tmp_path / "other", tmp_path / "projects.json"
    other.mkdir()
    written(tree / "AGENTS.md")
    written(other / "AGENTS.md")
    chats = [Project(folder, kept) for folder in (tree, other)]
    assert all(chat.question(ASK) for chat in chats)
    for chat in chats:
        chat.answer(is_sent=True)
    assert all(Project(folder, kept).document(ASK) for folder in (tree, other))


def test_an_answer_in_one_chat_holds_in_another_that_runs(tree: Path, tmp_path: Path) -> None:
    path, kept = written(tree / "AGENTS.md"), tmp_path / "projects.json"
    one, other = Project(tree, kept), Project(tree, kept)
    one.answer(is_sent=True)
    assert other.document(ASK)
    one.answer(is_sent=False)
    written(path, "Use four spaces.")
    assert (other.document(ASK), other.news(ASK)) == (None, "")
    assert one.document(ASK) is None


def test_the_setting_decides_before_any_answer(tree: Path, tmp_path: Path) -> None:
    path = written(tree / "AGENTS.md")
    project = Project(tree, tmp_path / "projects.json")
    assert (project.question(OFF), project.document(OFF)) == ("", None)
    assert project.question(ON) == ""
    assert project.document(ON) == (str(path), "Use tabs.")
    project.answer(is_sent=True)
    assert project.document(OFF) is None
    assert project.state(OFF) == f"{path} is not sent. /set project ask asks again."


def test_a_changed_file_is_named_once_and_sent_as_it_is_now(tree: Path, tmp_path: Path) -> None:
    path, kept = written(tree / "AGENTS.md"), tmp_path / "projects.json"
    Project(tree, kept).answer(is_sent=True)
    project = Project(tree, kept)
    assert project.news(ASK) == ""
    written(path, "Use four spaces.")
    assert project.news(ASK) == f"{path} has changed; it is sent as it is now."
    assert (project.news(ASK), Project(tree, kept).news(ASK)) == ("", "")
    document = project.document(ASK)
    assert document
    assert document.content == "Use four spaces."


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"x" * (PROJECT_FILE.most + 1), "it cannot be read (it is larger than 64 kB)"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b" \n", "it is empty"),
        (None, "it cannot be read (Is a directory)"),
    ],
)
def test_a_file_that_cannot_be_sent_is_told_once_and_never_asked_about(
    tree: Path, content: bytes | None, fault: str
) -> None:
    path = tree / "AGENTS.md"
    path.mkdir() if content is None else path.write_bytes(content)
    project = Project(tree)
    assert (project.question(ASK), project.document(ON), project.state(ON)) == ("", None, "")
    assert project.news(OFF) == ""
    assert project.news(ASK) == f"{path} is not sent: {fault}."
    assert project.news(ASK) == ""


def test_the_largest_file_is_sent(tree: Path) -> None:
    (tree / "AGENTS.md").write_bytes(b"x" * PROJECT_FILE.most)
    assert Project(tree).document(ON)


def test_a_link_may_lead_through_the_tree_and_not_out_of_it(tree: Path) -> None:
    outside, path = written(tree.parent / "key", "secret"), tree / "AGENTS.md"
    path.symlink_to(written(tree / "src" / "rules.md"))
    assert Project(tree).document(ON)
    path.unlink()
    path.symlink_to(outside)
    project = Project(tree)
    assert project.document(ON) is None
    assert project.news(ON) == f"{path} is not sent: it is a link that leads out of {tree}."
    path.unlink()
    path.symlink_to(tree / "nowhere")
    assert (Project(tree).document(ON), Project(tree).news(ON)) == (None, "")


async def test_the_text_follows_the_documents_and_is_a_part_of_the_context(world: World, tree: Path) -> None:
    path = written(tree / "AGENTS.md", "Use four spaces.")
    (world.folder / "personas" / "chorus" / "docs").mkdir()
    written(world.folder / "personas" / "chorus" / "docs" / "b.md", "A document.")
    without = (await world.context.planned(world.current.target(), world.clock.now())).tokens
    assert "text for models" not in await world.told("/settings")
    world.context.project.folder = tree
    await world.say("one")
    assert "Use four spaces." not in world.model.requests[-1].messages[0].content
    assert f"{path} is not sent. Your next message asks about it." in await world.told("/settings")
    world.context.project.answer(is_sent=True)
    await world.say("two")
    assert (
        world.model.requests[-1].messages[0].content.endswith(f"# b.md\n\nA document.\n\n# {path}\n\nUse four spaces.")
    )
    report = await world.told("/context")
    assert f"{path}; /set project off leaves it out" in report
    assert (await world.context.planned(world.current.target(), world.clock.now())).tokens > without
    assert f"{path} is sent with your messages." in await world.told("/settings project")
    await world.told("/set project off")
    await world.say("three")
    assert "Use four spaces." not in world.model.requests[-1].messages[0].content
    assert str(path) not in await world.told("/context")
    await world.told("/set project ask")
    assert world.context.project.question(ASK)


async def test_a_file_that_leaves_no_room_is_named_and_its_tokens_are_its_own(world: World, tree: Path) -> None:
    path = written(tree / "AGENTS.md", "tabs " * 9_000)
    world.context.project.folder = tree
    world.context.project.answer(is_sent=True)
    plan = await world.context.planned(world.current.target(), world.clock.now())
    measured = plan.snapshot.request_settings.system_prompt
    assert measured.document_tokens == 0
    assert measured.project_tokens > 9_000
    await world.told("/set context_token_limit 8192")
    with pytest.raises(
        MessageRefusedError, match=rf"and the documents [0-9,]+, but .* leave {path} out with /set project"
    ):
        await world.say("one")
    assert await world.log() == []
