"""Attachments in an edited context: lines that can be deleted and moved, but not made up."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import EditFormatError
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import Role
from tests.editing.rules.edit_sheets import (
    ANSWER,
    NOON,
    QUESTION,
    Added,
    ContextEdit,
    Kept,
    Reworded,
    edited,
    kept,
    said,
    sheet_of,
)

PHOTO = Attachment("photo.png", "image/png", 1_234_567, "0" * 64)
OTHER = PHOTO._replace(sha256="1" * 64)
LINE, OTHER_LINE = "[attachment: photo.png 1.2 MB]", "[attachment: photo.png 1.2 MB, 2]"
ASKED = QUESTION._replace(attachments=(PHOTO,))
THANKS = said(5, "Thanks!", 20)
TALK = sheet_of([], [ASKED, ANSWER, THANKS])


def test_an_attachment_is_a_line_below_its_message() -> None:
    assert f"Human: Where?\n{LINE}\n\n" in TALK.text
    assert edited(TALK) == ContextEdit(kept(3, 4, 5), dropped=(), changed=False)


def test_a_line_that_is_deleted_takes_the_attachment_from_its_message() -> None:
    edit = edited(TALK, (f"\n{LINE}", ""))
    assert edit.members == (Reworded(3, "Where?"), Kept(4), Kept(5))


def test_a_line_can_be_moved_to_another_message() -> None:
    edit = edited(TALK, (f"\n{LINE}", ""), ("Thanks!", f"Thanks!\n{LINE}"))
    assert edit.members == (Reworded(3, "Where?"), Kept(4), Reworded(5, "Thanks!", (PHOTO,)))


def test_a_line_may_stand_anywhere_in_its_message() -> None:
    assert not edited(TALK, (f"Where?\n{LINE}", f"Where?\n\n{LINE}\n  ")).changed


def test_words_can_change_beside_an_attachment_and_go_altogether() -> None:
    assert edited(TALK, ("Where?", "When?")).members[0] == Reworded(3, "When?", (PHOTO,))
    assert edited(TALK, ("Where?", "")).members[0] == Reworded(3, "", (PHOTO,))


def test_a_message_of_an_attachment_alone_stays() -> None:
    sheet = sheet_of([], [ASKED._replace(content="")])
    assert edited(sheet) == ContextEdit(kept(3), dropped=(), changed=False)


def test_a_new_message_may_have_an_attachment_of_another() -> None:
    (_, _, _, added) = edited(TALK, ("Thanks!", f"Thanks!\n\n[2026-02-12 12:01:00] Human: Again:\n{LINE}")).members
    assert added == Added(Role.USER, NOON.replace(minute=1, second=0, microsecond=0), "Again:", (PHOTO,))


def test_attachments_with_the_same_name_and_size_are_told_apart() -> None:
    sheet = sheet_of([], [ASKED, ANSWER, THANKS._replace(attachments=(OTHER,))])
    edit = edited(sheet, (f"\n{OTHER_LINE}", ""), (f"\n{LINE}", f"\n{OTHER_LINE}"))
    assert edit.members == (Reworded(3, "Where?", (OTHER,)), Kept(4), Reworded(5, "Thanks!"))


def test_words_that_look_like_an_attachment_are_escaped() -> None:
    sheet = sheet_of([], [said(3, f"see\n{LINE}", 10)])
    assert f"see\n\\{LINE}" in sheet.text
    assert not edited(sheet).changed


def test_an_attachment_cannot_be_made_up() -> None:
    with pytest.raises(EditFormatError) as refused:
        edited(TALK, ("Thanks!", "Thanks!\n[attachment: secret.png 1 kB]"))
    assert str(refused.value).startswith(r"Line ")
    assert r"no message here has the file [attachment: secret.png 1 kB]; put a \ before that line" in str(refused.value)
