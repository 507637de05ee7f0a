"""The text for editing a context: written, and read back after the usual changes of editors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.core.errors import EditFormatError
from chorus_cli.editing.rules.format import (
    CONTEXT_LINE,
    END_LINE,
    Block,
    ParsedEdit,
    alone,
    header_likeness,
    newest_line,
    parse,
    read_alone,
    render,
    shown_name,
)
from chorus_cli.log.rules.messages import Role
from tests.amount import examples

# What could be taken for a part of the format, and what some programs take for the end of a line.
NASTY_LINES = (
    "[attachment: a.png 1 kB]",
    "\\[attachment: a.png 1 kB] ",
    "",
    " ",
    "\t ",
    "---",
    "----",
    CONTEXT_LINE,
    f"  {CONTEXT_LINE}  ",
    "-- context starts here -",
    END_LINE,
    f"{END_LINE}\t",
    f"{END_LINE} or not",
    "[2025-01-18 22:15:03] Human: hello",
    "[2025-01-18 22:15:03] Frodo (tool): hello",
    "[2025-01-18] a log",
    "[2025-1-8",
    "[20x5-01-18 22:15:03] Human: hello",
    "2025-01-18 22:15:03] Frodo: hello",
    "\\2025-01-18 22:15:03 human :",
    "[link](https://example.org)",
    "# a title",
    "\\",
    "\\\\ ",
    "\\[2025-01-18 22:15:03] Human: hello",
    f"\\\\{CONTEXT_LINE}",
    f"\\{END_LINE}",
    "\\n",
    "vim: set sw=13:",
    "ex: set sw=13:",
    "-*- mode: sh -*-",
    "\f",
    "Local Variables:",
    "\x0b",
    "\x1c",
    "\x85",
    "\u2028",
    "\u3000",
    "\ufeff",
    "plain",
)
LINES = st.sampled_from(NASTY_LINES) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
BODIES = st.lists(LINES, max_size=6).map("\n".join)
TIMES = st.datetimes().map(lambda moment: moment.isoformat(" ", "seconds"))
ATTACHMENT_LINES = st.lists(st.sampled_from(["[attachment: a.png 1 kB]", "[attachment: b c.pdf 2 MB, 2]"]), max_size=2)
BLOCKS = st.builds(
    Block,
    st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL_USE]),
    TIMES,
    BODIES,
    st.just(0),
    ATTACHMENT_LINES.map(tuple),
)
BLOCK_LISTS = st.lists(BLOCKS, max_size=4)


def without_trailing_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))


LOSSLESS_EDITORS: dict[str, Callable[[str], str]] = {
    "as it was": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "byte order mark": lambda text: f"\ufeff{text}",
    "byte order mark and CRLF": lambda text: "\ufeff" + text.replace("\n", "\r\n"),
    "last newline dropped": lambda text: text.removesuffix("\n"),
    "more newlines at the end": lambda text: text + "\n\n",
    "the footer cut off": lambda text: text[: text.rindex(END_LINE) + len(END_LINE)],
}

NAME = "Frodo"
EARLIER_HEAD = """\
# Chorus context editor: Frodo
# The messages below the line "context starts here" are what Frodo sees. Delete those you do not want, change those
# you do, move the line up (or delete it) to bring older ones in. The order here is the order in which they are sent.
# A message begins with a line such as [2025-01-18 22:15:03] Human: and then its text. Write new ones in the same way;
# the speaker is Human or Frodo. Tool calls, written as Frodo (tool), can be moved or deleted, but not changed.
# Save and close to apply. Save an empty file, or unchanged, to cancel.
# A line such as [attachment: photo.png 1.2 MB] is a file of its message. Delete it, or move it to another message.
# In a message, a line that looks like such a beginning, an attachment or a --- line, and a blank line at the end, begin
# with a \\, which Chorus takes off again. If you write such a line yourself, type a \\ before it.
"""
EARLIER_FOOT = """

\f

# Write nothing here: a text below the line "end of messages" belongs to no message.
# A message with its old time, speaker and text stays the same message, wherever you move it. If only its text is new,
# it is the same message in new words. Everything else is a new message.
# Messages above the line "context starts here" are not sent: you cannot change them, and deleting them has no effect.
# The log keeps every message and every wording, and /context undo takes an edit back.
# Messages that arrive while you edit come after the messages above.
"""
NOON = "2025-01-18 12:00:00"


def bare(blocks: Sequence[Block]) -> list[Block]:
    return [block._replace(line=0) for block in blocks]


def messages(text: str) -> ParsedEdit:
    """Read a text with these lines between the rule and the end line."""
    return parse(f"---\n{text}\n{END_LINE}\n", NAME)


# Writing


def test_the_text_has_the_messages_around_the_line() -> None:
    older = Block(Role.USER, "2025-01-18 22:15:03", "Let's continue our journey...")
    newer = Block(Role.ASSISTANT, "2025-01-18 22:15:45", "*adjusts pack* The path looks treacherous...\nsecond line")
    lines = render(NAME, [older], [newer]).split("\n")
    rule = lines.index("---")
    end = lines.index(END_LINE)
    assert lines[0] == "# Chorus context editor: Frodo"
    assert "\n".join(lines[rule : end + 1]) == (
        "---\n\n[2025-01-18 22:15:03] Human: Let's continue our journey...\n\n--- context starts here ---\n\n"
        "[2025-01-18 22:15:45] Frodo: *adjusts pack* The path looks treacherous...\nsecond line\n\n"
        "--- end of messages ---"
    )
    assert (lines[end + 1], lines[-1]) == ("\f", "")
    for comments in (lines[:rule], lines[end + 2 : -1]):
        assert len(comments) >= 6
        assert all(line.startswith("# ") and len(line) <= 76 for line in comments)
    assert lines[1:3] == [
        "# Delete, change or move messages, and save to apply. To cancel, save it",
        '# unchanged or empty. Only messages below "context starts here" are sent.',
    ]


@given(st.text(max_size=40))
def test_no_comment_is_cut_in_80_columns_whatever_the_name(name: str) -> None:
    comments = [line for line in render(name, (), ()).split("\n") if line.startswith("#")]
    assert len(comments) >= 12
    assert all(len(line) <= 76 for line in comments)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("", ""),
        ("# Title\n---\n[link](x)\n- item\n\\n", "# Title\n---\n[link](x)\n- item\n\\n"),
        ("[2025-01-18 begins here", "[2025-01-18 begins here"),
        ("see\n[2025-01-18 begins here", "see\n\\[2025-01-18 begins here"),
        ("see\n\\[2025-01-18", "see\n\\\\[2025-01-18"),
        (f"see\n{END_LINE}\n {CONTEXT_LINE}.", f"see\n\\{END_LINE}\n\\ {CONTEXT_LINE}."),
        ("see\n-- ends of messages --\n--- context starts", "see\n-- ends of messages --\n--- context starts"),
        ("a\n\nb\n\n ", "a\n\nb\n\\\n\\ "),
        ("\n", "\n\\"),
        ("a\n\\", "a\n\\\\"),
    ],
)
def test_only_lines_that_could_be_mistaken_have_a_backslash(body: str, shown: str) -> None:
    text = render(NAME, [], [Block(Role.USER, NOON, body)])
    assert text.split(f"{CONTEXT_LINE}\n\n")[1].split(f"\n\n{END_LINE}")[0] == f"[{NOON}] Human: {shown}"


VIM_MODELINE = re.compile(r"(?:^|\s)(?:vi|[vV]im[<=>]?\d*|ex):")


@given(st.text(), BLOCK_LISTS, BLOCK_LISTS)
@example("vim: set sw=13:", [], [])
@example("-*- sh -*-", [], [Block(Role.USER, NOON, "\f\nLocal Variables:\nEnd:\n# vim: set sw=13:")])
def test_no_editor_takes_a_message_for_its_settings(name: str, before: list[Block], context: list[Block]) -> None:
    text = render(name, before, context)
    lines = text.removesuffix("\n").split("\n")
    assert not any(map(VIM_MODELINE.search, lines[:6] + lines[-6:]))
    assert "-*-" not in lines[0] + lines[1]
    assert "Local Variables:" not in text.rpartition("\n\f")[2]


# Reading back


@given(BLOCK_LISTS, BLOCK_LISTS)
@examples(200)
def test_reading_back_gives_exactly_what_was_written(before: list[Block], context: list[Block]) -> None:
    text = render(NAME, before, context)
    for edited in (editor(text) for editor in LOSSLESS_EDITORS.values()):
        parsed = parse(edited, NAME)
        assert bare(parsed.blocks) == before + context
        assert parsed.context_start == len(before)


@given(BODIES)
@examples(200)
def test_a_message_alone_is_exactly_its_words_after_any_line_ends(body: str) -> None:
    text = alone(body)
    assert text == f"{body}\n"
    assert [read_alone(LOSSLESS_EDITORS[name](text)) for name in ("as it was", "CRLF", "CR")] == [body] * 3


@given(BLOCK_LISTS, BLOCK_LISTS)
def test_stripping_blanks_from_line_ends_changes_nothing_else(before: list[Block], context: list[Block]) -> None:
    parsed = parse(without_trailing_blanks(render(NAME, before, context)), NAME)
    assert [(block.role, block.time, block.body) for block in parsed.blocks] == [
        (block.role, block.time, without_trailing_blanks(block.body)) for block in before + context
    ]


@given(BLOCK_LISTS, BLOCK_LISTS)
def test_lines_are_counted_as_an_editor_counts_them(before: list[Block], context: list[Block]) -> None:
    text = render(NAME, before, context)
    parsed = parse(text, NAME)
    lines = text.split("\n")
    assert all(lines[block.line - 1].startswith(f"[{block.time}]") for block in parsed.blocks)
    at_context = lines.index(CONTEXT_LINE) + 1
    assert newest_line(text) == max(at_context, *(block.line for block in parsed.blocks), 0)


@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "line", ["x", "\n", "\\\n", " \n", f"{END_LINE}\n", "[2025-01-18 22:15:03] Human: x\n", "-", "\\"]
)
def test_a_megabyte_comes_back(line: str, length: int) -> None:
    large = Block(Role.ASSISTANT, NOON, line * (length // len(line)))
    small = Block(Role.USER, NOON, "and?")
    assert bare(parse(render(NAME, [large], [small]), NAME).blocks) == [large, small]


@given(st.text(), BLOCK_LISTS)
@example("Human", [Block(Role.USER, NOON, "I"), Block(Role.ASSISTANT, NOON, "you")])
@example("HUMAN", [Block(Role.USER, NOON, "I"), Block(Role.ASSISTANT, NOON, "you")])
@example("a: b] [c\n", [Block(Role.ASSISTANT, NOON, "x")])
@example("\ud800", [Block(Role.TOOL_USE, NOON, "x")])
def test_a_persona_of_any_name_can_be_edited(name: str, blocks: list[Block]) -> None:
    assert bare(parse(render(name, [], blocks), name).blocks) == blocks
    assert shown_name(shown_name(name)) == shown_name(name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Frodo", "Frodo"),
        ("Frodo Beutlin-Sackheim (jr.)", "Frodo Beutlin-Sackheim (jr.)"),
        ("Żółć 2", "Żółć 2"),
        ("a:b", "a b"),
        (" [x]\ny\t*z* ", "x y z"),
        ("\u202eodorF", "odorF"),
        (":", "Persona"),
        ("", "Persona"),
        ("human", "human (persona)"),
        ("[Human]", "Human (persona)"),
    ],
)
def test_only_a_name_that_would_be_misread_is_shown_differently(name: str, shown: str) -> None:
    assert shown_name(name) == shown


@pytest.mark.parametrize(
    ("line", "block"),
    [
        (f"[{NOON}] Human: hello", Block(Role.USER, NOON, "hello", 2)),
        (f"[{NOON}] human:hello", Block(Role.USER, NOON, "hello", 2)),
        (f"[{NOON}]  FRODO :  hello", Block(Role.ASSISTANT, NOON, " hello", 2)),
        (f"[{NOON}] Frodo (tool): x", Block(Role.TOOL_USE, NOON, "x", 2)),
        (f"[{NOON}] Human:", Block(Role.USER, NOON, "", 2)),
        (f"[{NOON}] Human:\nhello\n\n\n", Block(Role.USER, NOON, "\nhello", 2)),
        (f"[{NOON}] Human: a: b\r\n\\ \n", Block(Role.USER, NOON, "a: b\n ", 2)),
    ],
)
def test_a_message_can_be_written_by_hand(line: str, block: Block) -> None:
    assert messages(line).blocks == (block,)


@pytest.mark.parametrize(
    "line", ["", CONTEXT_LINE, f"{CONTEXT_LINE} \t", "-- context starts here -", "  ---context starts here---"]
)
def test_the_line_may_be_touched_in_passing_and_without_it_all_is_the_context(line: str) -> None:
    parsed = messages(f"[{NOON}] Human: a\n{line}\n[{NOON}] Frodo: b")
    assert (len(parsed.blocks), parsed.context_start) == (2, 1 if line else 0)


def test_the_comments_may_be_deleted_and_others_written() -> None:
    assert parse(f"\n# mine\n\n---\n\n{END_LINE}", NAME).blocks == ()
    assert parse(f"---\n{END_LINE}\n\n#\n \n# mine", NAME).blocks == ()


@given(BLOCK_LISTS, BLOCK_LISTS)
@examples(30)
def test_a_draft_with_the_comments_of_before_is_still_read(before: list[Block], context: list[Block]) -> None:
    text = render(NAME, before, context)
    rule, end = text.index("---\n"), text.rindex(END_LINE) + len(END_LINE)
    parsed = parse(f"{EARLIER_HEAD}{text[rule:end]}{EARLIER_FOOT}", NAME)
    assert (bare(parsed.blocks), parsed.context_start) == (before + context, len(before))


# What is not understood is never dropped


HELLO = f"[{NOON}] Human: hello"

REFUSED: dict[str, tuple[str, int, str]] = {
    "an empty text": ("", 1, "missing"),
    "text above the header": (f"hello\n---\n{HELLO}\n{END_LINE}", 1, "must come first"),
    "a message above the header": (f"{HELLO}\n# comment\n---\n{END_LINE}", 1, "must come first"),
    "no header": (f"# comment\n\n{HELLO}\n\n{END_LINE}", 3, "must come first"),
    "only comments": ("# comment\n# comment\n", 2, "missing"),
    "text before the first message": (f"---\n\nhello\n{HELLO}\n{END_LINE}", 3, "no message begins before"),
    "a comment before the first message": (f"---\n# hello\n{HELLO}\n{END_LINE}", 2, "no message begins before"),
    "no end": (f"---\n\n{HELLO}\nand more\n", 4, "is missing"),
    "the end escaped": (f"---\n{HELLO}\n\\{END_LINE}", 3, "is missing"),
    "text below the end": (f"---\n{HELLO}\n{END_LINE}\n# comment\n\nhello\n", 6, "belongs to no message"),
    "a message below the end": (f"---\n{END_LINE}\n{HELLO}\n", 3, "belongs to no message"),
    "two ends": (f"---\n{END_LINE}\n{HELLO}\n{END_LINE}", 3, "belongs to no message"),
    "the line below the end": (f"---\n{HELLO}\n{END_LINE}\n{CONTEXT_LINE}", 4, "belongs to no message"),
    "the line twice": (f"---\n{CONTEXT_LINE}\n{HELLO}\n{CONTEXT_LINE}\n{END_LINE}", 4, "in line 2 already"),
    "the line within a message": (f"---\n{HELLO}\n{CONTEXT_LINE}\n\nand more\n{END_LINE}", 3, "line 5 begins no"),
    "the line above the header": (f"{CONTEXT_LINE}\n# comment\n---\n{HELLO}\n{END_LINE}", 1, "must come first"),
    "a date alone": (f"---\n{HELLO}\n[2025-01-18] and more\n{END_LINE}", 3, "looks like the beginning"),
    "a short date": (f"---\n{HELLO}\n[2025-1-18 12:00:00] Human: x\n{END_LINE}", 3, "looks like the beginning"),
    "no seconds": (f"---\n[2025-01-18 12:00] Human: x\n{END_LINE}", 2, "looks like the beginning"),
    "no speaker": (f"---\n[{NOON}] hello\n{END_LINE}", 2, "looks like the beginning"),
    "an unknown speaker": (f"---\n{HELLO}\n[{NOON}] Sam: hello\n{END_LINE}", 3, "'Sam'"),
    "an empty speaker": (f"---\n[{NOON}] : hello\n{END_LINE}", 2, "''"),
    "an impossible day": (f"---\n[2025-02-30 12:00:00] Human: x\n{END_LINE}", 2, "2025-02-30 12:00:00"),
    "an impossible second": (f"---\n[2025-02-03 12:00:60] Human: x\n{END_LINE}", 2, "no such time"),
    "a year too few": (f"---\n[0000-02-03 12:00:00] Human: x\n{END_LINE}", 2, "no such time"),
}


@pytest.mark.parametrize("editor", ["as it was", "CRLF", "byte order mark", "CR"])
@pytest.mark.parametrize(("text", "line", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_named_by_its_line(text: str, line: int, words: str, editor: str) -> None:
    with pytest.raises(EditFormatError) as caught:
        parse(LOSSLESS_EDITORS[editor](text), NAME)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"Line {line}: ")
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


@given(BLOCK_LISTS, BLOCK_LISTS)
@example([], [Block(Role.USER, NOON, f"a\n{END_LINE} is what I see")])
@examples(30)
def test_a_text_cut_off_before_its_end_is_refused(before: list[Block], context: list[Block]) -> None:
    text = render(NAME, before, context)
    end = text.rindex(END_LINE) + len("--- end of messages")
    for length in range(text.index("\n---\n"), end):
        with pytest.raises(EditFormatError):
            parse(text[:length], NAME)


@given(st.lists(LINES, max_size=12))
def test_whatever_is_written_is_read_or_refused(lines: list[str]) -> None:
    """No line is lost: all words but those of comments and of the format are read."""
    text = "\n".join(["---", HELLO, *lines, END_LINE])
    try:
        parsed = parse(text, NAME)
    except EditFormatError:
        return
    once_more = parse(render(NAME, parsed.blocks[: parsed.context_start], parsed.blocks[parsed.context_start :]), NAME)
    assert bare(once_more.blocks) == bare(parsed.blocks)
    read = "".join(block.body for block in parsed.blocks)
    assert all(line in read for line in lines if line.isalnum())


# Lines that look like the beginning of a message and are none

is_header_like = header_likeness(["Human", "Frodo", "Frodo (tool)"])

LIKE = (
    "[20x5-01-18 22:15:03] Human: hello",
    "2025-01-18 22:15:03] Human: hello",
    "2025-01-18 22:15:03 Human: hello",
    " [2025-01-18 22:15:03] Human: hello",
    "[[2025-01-18 22:15:03] Human: hello",
    "(2025-01-18 22:15:03) Human: hello",
    "[202-01-18 22:15:03] Human: hello",
    "[2025/01/18 22:15:03] Humn: hello",
    "[20255-01-18 22:15:03] hello",
    "[2025 01 18 22.15.03] Human: hello",
    "]2025-01-18 22:15:03[ frodo : hello",
    "2025-01-18 Frodo (tool): x",
    "22:15 Frodo: hello",
)
UNLIKE = (
    "",
    "hello",
    "Human: hello",
    "Frodo: *adjusts pack*",
    "(laughs) Frodo: hello",
    "2025-01-18 22:15:03 ERROR: disk full",
    "2025-01-18 22:15:03,123 INFO root: Human: came in",
    "[18/Jan/2025:22:15:03 +0000] GET /",
    "[link](https://example.org/2025-01-18)",
    "[1]: https://example.org",
    "- 12:30 lunch with Frodo: bring bread",
    "On 2025-01-18 at 22:15 Human: hello",
    "At ten Human: hello",
    "2025 was a good year for Frodo: he came home",
    "> [2025-01-18 22:15:03] Human: quoted",
    " " * 1_000_000,
    "[" * 1_000_000,
    "1-" * 1_000_000 + ":",
)


@pytest.mark.parametrize("line", UNLIKE, ids=lambda line: line[:40])
def test_what_stands_in_ordinary_texts_does_not(line: str) -> None:
    assert not is_header_like(line)


@pytest.mark.parametrize("line", LIKE)
def test_such_a_line_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(EditFormatError, match=r"^Line 4: this looks like the beginning of a message, but is not; "):
        messages(f"[{NOON}] Human: a\n\n{line}")
