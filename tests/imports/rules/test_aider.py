"""aider's history: each chat is a conversation, what the program says is counted, and code hides no message."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from chorus_cli.imports.rules.conversation import ForeignConversation
from tests.imports.rules.exports import found_in, live, said

HISTORY = """
# aider chat started at 2024-07-12 14:30:00

> Aider v0.45.1  \n> Main model: gpt-4o with diff edit format, infinite output  \n> Added hello.py to the chat.  \n
#### Say hello  \n#### in two lines.  \n
Of course:

hello.py
```python
<<<<<<< SEARCH
=======
# aider is not here
#### nor here
> or here
>>>>>>> REPLACE
```

Done.

> Tokens: 2.1k sent, 84 received.  \n> Applied edit to hello.py  \n
#### /tokens  \n
> Approximate context window usage  \n
# aider chat started at 2024-07-13 09:00:00

> Aider v0.45.1  \n
#### Cut off  \n
```python
half

> Tokens: 1k sent, 3 received.  \n
#### Again  \n
Yes.

# aider chat started at 2024-07-14 09:00:00

> Aider v0.45.1  \n"""


def read(path: Path, text: str) -> tuple[list[ForeignConversation], list[str]]:
    path.write_text(text, encoding="utf-8")
    return found_in(path, ZoneInfo("Europe/Berlin"))


def test_each_chat_is_a_conversation_of_what_was_said(tmp_path: Path) -> None:
    ((first, second), skipped) = read(tmp_path / ".aider.chat.history.md", HISTORY)
    assert skipped == ["conversation without messages"]
    question, reply, command = live(first)
    assert (question.content, command.content) == ("Say hello\nin two lines.", "/tokens")
    assert reply.content.startswith("Of course:\n\nhello.py\n```python\n<<<<<<< SEARCH")
    assert "#### nor here\n> or here\n>>>>>>> REPLACE\n```\n\nDone." in reply.content
    assert (reply.model, question.timestamp) == ("gpt-4o", datetime(2024, 7, 12, 12, 30, tzinfo=UTC))
    assert (first.created_at, dict(first.skipped)) == (question.timestamp, {"note of the program": 3})
    assert first.guesses[0].startswith("aider writes times without a zone: they were read in the zone Europe/Berlin.")
    cut, again = ("assistant", "```python\nhalf"), ("user", "Again")
    assert said(second) == [("user", "Cut off"), cut, again, ("assistant", "Yes.")]


def test_a_chat_that_goes_on_keeps_its_keys(tmp_path: Path) -> None:
    cut = HISTORY.index("#### /tokens")
    before, after = (read(tmp_path / "a.md", text)[0][0] for text in (HISTORY[:cut], HISTORY))
    assert after.key == before.key
    assert [each.key for each in after.messages][:2] == [each.key for each in before.messages]
