"""Rows with attachments in a request: sent, named where there is no room, and never in a reply."""

from __future__ import annotations

from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.models.rules.budget import Room, own_tokens
from tests.context.rules.test_assembly import COUNT, SYSTEM_TOKENS, message, planned

DOCUMENT = Attachment("long.pdf", "application/pdf", 2_000_000, "0" * 64, pages=10)
PHOTO = Attachment("photo.png", "image/png", 2_000, "1" * 64, 100, 100)
AMPLE = Room(1_000_000, 500_000)


def attached(row: Message, *attachments: Attachment) -> Message:
    row = row._replace(attachments=attachments)
    return row._replace(token_count=own_tokens(row, COUNT))


def talk(document: Attachment, role: Role = Role.USER) -> list[Message]:
    """Return two turns, the first with an attachment."""
    first = attached(message(1, role, "read this", 1), document)
    return [first, message(2, Role.ASSISTANT, "done", 1), message(3, Role.USER, "go on", 3)]


def test_a_picture_goes_with_its_question() -> None:
    sent = planned(talk(PHOTO), AMPLE).request.messages[1]
    assert (sent.content, sent.attachments) == ("read this", (PHOTO,))


def test_a_document_without_room_is_named() -> None:
    plan = planned(talk(DOCUMENT), Room(SYSTEM_TOKENS + 200, 100))
    assert [(each.content, each.attachments) for each in plan.request.messages[1:2]] == [
        ("read this\n[attachment: long.pdf 2.0 MB]", ())
    ]
    assert [row.id for row in plan.cut] == [1]
    assert plan.tokens <= SYSTEM_TOKENS + 200


def test_the_newest_question_keeps_its_attachments() -> None:
    rows = [message(1, Role.USER, "hello", 1), attached(message(2, Role.USER, "read", 2), PHOTO)]
    plan = planned(rows, Room(SYSTEM_TOKENS + 270, 100))
    assert plan.request.messages[-1].attachments == (PHOTO,)


def test_a_picture_in_a_reply_is_named() -> None:
    plan = planned(talk(PHOTO, Role.ASSISTANT), AMPLE)
    assert plan.request.messages[2].content == "read this\n[attachment: photo.png 2 kB]"
    assert plan.request.messages[2].attachments == ()


def test_a_message_of_an_attachment_alone_is_sent() -> None:
    plan = planned([attached(message(1, Role.USER, "", 1), PHOTO)], AMPLE)
    assert (plan.request.messages[-1].content, plan.request.messages[-1].attachments) == ("", (PHOTO,))
