"""llm's log: a database that versions 0.26 and 0.36 wrote, read as `llm logs list --json` shows it."""

from __future__ import annotations

import shutil
import sqlite3
import tracemalloc
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files.reading import sources
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Skipped
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import check, live, said, source_of

WRITTEN = (Path(__file__).parent / "samples" / "llm-0.26-and-0.36.sql").read_text(encoding="utf-8")
CONTINUED, FIRST, FORK = "01m81wxfyhmq292y8rbtye1p62", "01m81x4rcm752hf3exvaj3bx0h", "01m81yere4t72699932d1d3ppb"
OLD_TOOLS, NEW_TOOLS = "01m81x2sgw8gjt9jnpn31hm6tj", "01m81x5t8sq6qkqwmn5jhc7zq2"
TABLES = ("responses", "threads", "turns", "messages", "parts", "attachments", "fragments", "tool_calls")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llm") / "logs.db"
    changed(path, f"BEGIN; {WRITTEN} COMMIT;")
    return path


@pytest.fixture
def log(tmp_path: Path, written: Path) -> Path:
    return Path(shutil.copy(written, tmp_path))


def changed(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def conversations(path: Path) -> dict[str, ForeignConversation]:
    with closing(source_of(path)) as opened:
        return {each.key: each for each in opened.conversations() if isinstance(each, ForeignConversation)}


def test_the_counts_are_those_that_llm_itself_tells(log: Path) -> None:
    """Those of `llm logs list --json -n 0`, and a fork without a turn of its own, which it does not list."""
    found = conversations(log)
    for each in found.values():
        check(each)
    fork = found.pop(FORK)
    roles = Counter(message.role for each in found.values() for message in each.messages)
    assert len(found) == 15
    assert roles == {Role.USER: 21, Role.ASSISTANT: 21, Role.TOOL_USE: 4, Role.TOOL_RESULT: 4}
    assert said(fork) == said(found[FIRST])[:2]


def test_a_conversation_of_both_generations_is_one_with_the_times_of_each(log: Path) -> None:
    found = conversations(log)[CONTINUED]
    asked = ["First question", "And a second one", "New: a third one in the old conversation"]
    assert [message.content for message in live(found)][::2] == asked
    assert len(found.messages) == 6
    times = [message.timestamp for message in live(found) if message.timestamp]
    assert times[0] == datetime(2026, 11, 22, 15, 10, 10, 669375, tzinfo=UTC)
    assert times == sorted(times)
    assert (times[2].minute, times[4].minute, found.title) == (10, 14, "First question")


def test_an_older_import_is_continued_by_the_same_keys(log: Path) -> None:
    before = conversations(log)
    changed(log, "DELETE FROM threads; DELETE FROM turns; DELETE FROM messages; DELETE FROM parts")
    older = conversations(log)
    for key, conversation in older.items():
        assert [message.key for message in before[key].messages][: len(conversation.messages)] == [
            message.key for message in conversation.messages
        ]


@pytest.mark.parametrize(("key", "version"), [(OLD_TOOLS, "0.26"), (NEW_TOOLS, "0.36")])
def test_calls_stand_with_their_results(log: Path, key: str, version: str) -> None:
    _, call, result, reply, *_ = live(conversations(log)[key])
    assert (call.role, result.role, result.content) == (Role.TOOL_USE, Role.TOOL_RESULT, version)
    assert call.tool_call_id == result.tool_call_id
    assert '"llm_version"' in (call.tool_calls or "")
    assert (reply.role, reply.model) == (Role.ASSISTANT, "loop")
    assert call.timestamp
    assert result.timestamp
    assert call.timestamp < result.timestamp


def test_fragments_stand_before_the_prompt_and_system_prompts_are_counted(log: Path) -> None:
    found = conversations(log).values()
    prompts = [each.messages[0].content for each in found]
    assert "A fragment file.\nSecond line.\nExplain the fragment" in prompts
    assert "A fragment file.\nSecond line.\nNew: explain the fragment" in prompts
    assert sum(dict(each.skipped).get("system prompt", 0) for each in found) == 4


def test_attachments_have_their_bytes(log: Path) -> None:
    with closing(source_of(log)) as opened:
        files = [file for each in opened.conversations() for file in _files(each)]
        assert [(file.name, file.media_type) for file in files] == [("attachment.png", "image/png")] * 4
        assert all((opened.bytes_of(file) or b"").startswith(b"\x89PNG") for file in files)


def test_an_attachment_on_the_disk_is_read_only_if_it_is_still_the_same(log: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(log)) as connection:
        ((content,),) = connection.execute("SELECT content FROM attachments")
        (tmp_path / "same.png").write_bytes(content)
        (tmp_path / "other.png").write_bytes(b"a secret")
    for name, expected in (("same.png", content), ("other.png", None), ("gone.png", None)):
        changed(log, f"UPDATE attachments SET content = NULL, path = '{tmp_path / name}'")  # noqa: S608 - a path
        with closing(source_of(log)) as opened:
            (file,) = {file for each in opened.conversations() for file in _files(each)}
            assert (file.name, opened.bytes_of(file)) == (name, expected)


def _files(found: ForeignConversation | Skipped) -> list[ForeignFile]:
    messages = found.messages if isinstance(found, ForeignConversation) else ()
    return [file for message in messages for file in message.files]


def test_another_reply_to_the_same_message_is_a_branch(log: Path) -> None:
    changed(
        log,
        f"""
        INSERT INTO messages SELECT 'other', parent_hash, role, NULL FROM messages
            WHERE hash = (SELECT tip_message_hash FROM threads WHERE id = '{FIRST}');
        INSERT INTO parts(message_hash, position, type, text) VALUES('other', 0, 'text', 'Otherwise');
        INSERT INTO turns(id, thread_id, tip_message_hash, model, datetime_utc)
            VALUES('zz', '{FIRST}', 'other', 'loop', '2026-11-23 10:00:00+00:00');
        """,  # noqa: S608 - an id
    )
    found = conversations(log)[FIRST]
    (other,) = (message for message in found.messages if message.key not in found.live)
    assert (other.content, other.parent, len(found.live)) == ("Otherwise", found.live[-2], 6)
    assert other.timestamp == datetime(2026, 11, 23, 10, tzinfo=UTC)


def test_the_log_is_not_changed(log: Path) -> None:
    before = log.read_bytes()
    conversations(log)
    assert log.read_bytes() == before


def test_a_database_of_another_program_and_a_broken_one_are_told_in_a_sentence(tmp_path: Path) -> None:
    changed(tmp_path / "other.db", "CREATE TABLE chat(id)")
    with pytest.raises(ImportFormatError, match=r"other\.db has an unknown format"):
        list(sources(tmp_path / "other.db"))
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(ImportFormatError, match="an unknown format"):
        list(sources(tmp_path / "broken.db"))


def test_a_log_that_is_damaged_further_on_is_told_in_a_sentence(log: Path) -> None:
    whole = log.read_bytes()
    with closing(sqlite3.connect(log)) as connection:
        ((page, size),) = connection.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master WHERE name = 'responses'"
        )
    log.write_bytes(whole[: (page - 1) * size] + bytes(size) + whole[page * size :])
    with closing(source_of(log)) as opened, pytest.raises(ImportFormatError, match="cannot be read as the log of llm"):
        list(opened.conversations())


ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT"


def test_a_view_in_place_of_a_table_is_not_waited_for(log: Path) -> None:
    view = f"CREATE VIEW Fragments AS {ENDLESS} n AS id, 'x' AS content FROM more"
    changed(log, f"PRAGMA legacy_alter_table = ON; ALTER TABLE fragments RENAME TO pieces; {view};")
    with closing(source_of(log)) as opened:
        skipped = [each.reason for each in opened.conversations() if isinstance(each, Skipped)]
    assert skipped
    assert {reason.partition(": ")[2] for reason in skipped} == {"access to Fragments.content is prohibited."}


def test_a_column_that_is_generated_is_not_read(log: Path) -> None:
    before = conversations(log)
    changed(log, "ALTER TABLE responses ADD COLUMN bomb GENERATED ALWAYS AS (zeroblob(200000000)) VIRTUAL")
    changed(log, "ALTER TABLE messages ADD COLUMN bomb GENERATED ALWAYS AS (zeroblob(2000000000)) VIRTUAL")
    tracemalloc.start()
    try:
        assert conversations(log) == before
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 50_000_000


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_any_value_in_any_column_harms_at_most_its_conversation(log: Path, data: st.DataObject) -> None:
    anything = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9) | st.binary(max_size=9) | st.floats()
    with closing(sqlite3.connect(log)) as connection:
        for _ in range(3):
            table = data.draw(st.sampled_from(TABLES))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column = data.draw(st.sampled_from(columns))
            value = data.draw(anything)
            text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            rows = connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall()  # noqa: S608 - names
            one = (text, *data.draw(st.sampled_from(rows)))
            with suppress(sqlite3.IntegrityError):
                connection.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ? WHERE rowid = ?', one)  # noqa: S608
        connection.commit()
    with closing(source_of(log)) as opened:
        for each in opened.conversations():
            if isinstance(each, ForeignConversation):
                check(each)
            for file in _files(each):
                opened.bytes_of(file)
