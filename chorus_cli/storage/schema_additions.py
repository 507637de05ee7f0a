"""The statements of the later migrations: from numbers for the user to the thoughts of models."""

from __future__ import annotations

from chorus_cli.storage.schema import UTC_TIME

ORIGIN_OF = "origin_of"
"""The function of SQL that names an older log by the persona, the time and the content of its first message."""


def _numbering(table: str) -> tuple[str, ...]:
    """Return the statements that number the rows of a table per persona, those there are in the order of their ids."""
    return (
        f"ALTER TABLE {table} ADD COLUMN number INTEGER",
        f"""
        UPDATE {table} SET number = counted.number FROM (
            SELECT id, ROW_NUMBER() OVER (PARTITION BY persona ORDER BY id) AS number FROM {table}
        ) AS counted WHERE counted.id = {table}.id""",
        f"INSERT INTO numbers SELECT persona, '{table}', MAX(number) FROM {table} GROUP BY persona",
        f"CREATE UNIQUE INDEX {table}_by_number ON {table}(persona, number)",
        # Not one upsert: the conflict clause of the statement that inserts the row would hold in its place.
        f"""
        CREATE TRIGGER {table}_numbered AFTER INSERT ON {table} BEGIN
            INSERT OR IGNORE INTO numbers VALUES (new.persona, '{table}', 0);
            UPDATE numbers SET newest = newest + 1 WHERE persona = new.persona AND counted = '{table}';
            UPDATE {table} SET number = (SELECT newest FROM numbers WHERE persona = new.persona AND counted = '{table}')
            WHERE id = new.id;
        END""",
    )


NUMBERS: tuple[str, ...] = (
    # The newest number is kept apart from the rows: that of a deleted row is not given again.
    """
    CREATE TABLE numbers(
        persona TEXT NOT NULL,
        counted TEXT NOT NULL,
        newest INTEGER NOT NULL,
        PRIMARY KEY (persona, counted)
    ) STRICT, WITHOUT ROWID""",
    """
    INSERT INTO threads(id, persona, created_at) SELECT thread_id, persona, timestamp FROM messages WHERE id IN (
        SELECT MIN(id) FROM messages WHERE thread_id NOT IN (SELECT id FROM threads) GROUP BY thread_id
    )""",
    *_numbering("threads"),
    *_numbering("operations"),
    "DROP INDEX threads_of_persona",
    # A row put in with plain SQL may name a thread that was never opened.
    """
    CREATE TRIGGER messages_open_thread AFTER INSERT ON messages
    WHEN NOT EXISTS (SELECT 1 FROM threads WHERE id = new.thread_id) BEGIN
        INSERT INTO threads(id, persona, created_at) VALUES (new.thread_id, new.persona, new.timestamp);
    END""",
)
"""``threads`` and ``operations`` with numbers for the user, and a thread for each message."""


def _origin(table: str) -> tuple[str, ...]:
    """Return the statements that give each row of a table the installation it was made by, and its place there."""
    own = "(SELECT origin FROM installation)"
    return (
        f"ALTER TABLE {table} ADD COLUMN origin TEXT",
        f"ALTER TABLE {table} ADD COLUMN origin_seq INTEGER",
        f"UPDATE {table} SET origin = {own}, origin_seq = id",
        f"""
        CREATE TRIGGER {table}_of_origin AFTER INSERT ON {table} WHEN new.origin IS NULL BEGIN
            UPDATE {table} SET origin = {own}, origin_seq = new.id WHERE id = new.id;
        END""",
    )


IMPORTS: tuple[str, ...] = (
    "CREATE TABLE installation(origin TEXT NOT NULL) STRICT",
    # An older log has the name that an import of it gave it before; a new one has no message to be named by.
    f"""
    INSERT INTO installation SELECT COALESCE(
        (SELECT {ORIGIN_OF}(persona, timestamp, content) FROM messages ORDER BY id LIMIT 1), lower(hex(randomblob(8)))
    )""",
    *_origin("messages"),
    *_origin("operations"),
    *_origin("summaries"),
    *_origin("context_items"),
    "ALTER TABLE messages ADD COLUMN attachments TEXT",
    "ALTER TABLE messages ADD COLUMN reasoning TEXT",
    "ALTER TABLE messages ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0 CHECK (superseded IN (0, 1))",
    "CREATE INDEX messages_superseded ON messages(thread_id) WHERE superseded",
    """
    CREATE TABLE imported_conversations(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        source TEXT NOT NULL,
        conversation TEXT NOT NULL,
        thread_id INTEGER NOT NULL REFERENCES threads(id),
        operation_id INTEGER NOT NULL REFERENCES operations(id),
        UNIQUE (persona, source, conversation)
    ) STRICT""",
    "CREATE INDEX imported_conversations_of_thread ON imported_conversations(thread_id)",
    """
    CREATE TABLE imported_messages(
        conversation_id INTEGER NOT NULL REFERENCES imported_conversations(id),
        message TEXT NOT NULL,
        message_id INTEGER NOT NULL REFERENCES messages(id),
        PRIMARY KEY (conversation_id, message)
    ) STRICT, WITHOUT ROWID""",
)
"""Rows that name the installation they are from, messages with attachments, and the conversations of other programs.

An imported message that is ``superseded`` is on another branch than the one its conversation ended with.
"""

BRANCHES: tuple[str, ...] = ("ALTER TABLE imported_messages ADD COLUMN parent TEXT",)
"""Imported messages with the message before each on its branch, so that an export has the branches again."""

_READ = (
    "persona, thread_id, role, content, timestamp, preamble, tool_calls, tool_call_id, status, run, model, "
    "token_count, introduced_by, revises, usage, attachments, superseded"
)
_TURN_DIFFERS = "COALESCE(old.turn_id, old.id) <> COALESCE(new.turn_id, new.id)"
_DIFFERS = " OR ".join([_TURN_DIFFERS, *(f"old.{name} IS NOT new.{name}" for name in _READ.split(", "))])


def _counted_changes(differs: str) -> str:
    return f"""
    CREATE TRIGGER messages_changed AFTER UPDATE ON messages
    WHEN old.status = 'complete' AND old.token_count IS NOT NULL AND ({differs}) BEGIN
        UPDATE changed_rows SET count = count + 1;
    END"""


CHANGED_ROWS: tuple[str, ...] = (
    "CREATE TABLE changed_rows(count INTEGER NOT NULL) STRICT",
    "INSERT INTO changed_rows VALUES (0)",
    _counted_changes(_DIFFERS),
    """
    CREATE TRIGGER messages_deleted AFTER DELETE ON messages BEGIN
        UPDATE changed_rows SET count = count + 1;
    END""",
)
"""The number of changes of messages that do not change by themselves any more, so that a reader may keep them."""

PURGES: tuple[str, ...] = (
    "ALTER TABLE messages ADD COLUMN purged_by INTEGER",
    "ALTER TABLE context_items ADD COLUMN purged_by INTEGER",
    # A purge and a later import ask for these few; no other row is in the index.
    "CREATE INDEX messages_purged ON messages(origin, origin_seq) WHERE purged_by IS NOT NULL",
)
"""Messages and memory items with the operation that has overwritten them for good; such a row is in no list."""

INTENTS: tuple[str, ...] = (
    """
    CREATE TABLE intents(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        kind TEXT NOT NULL,
        detail TEXT NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL,
        created_at TEXT NOT NULL
    ) STRICT""",
)
"""Changes of files that rows of the journal belong to, from before the file is written until the row is stored.

``before`` and ``after`` are hashes of the files.
"""

OTHER_REQUESTS: tuple[str, ...] = (
    f"""
    CREATE TABLE other_requests(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        thread_id INTEGER NOT NULL,
        purpose TEXT NOT NULL DEFAULT 'summary',
        model TEXT,
        usage TEXT,
        timestamp TEXT NOT NULL CHECK (timestamp {UTC_TIME})
    ) STRICT""",
    "CREATE INDEX other_requests_by_time ON other_requests(timestamp)",
)
"""Requests to models whose answers are no messages, such as those for summaries; only their usage is stored."""

OUTBOX: tuple[str, ...] = (
    f"""
    CREATE TABLE outbox(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        thread_id INTEGER,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        is_sent INTEGER NOT NULL CHECK (is_sent IN (0, 1)),
        run TEXT NOT NULL,
        created_at TEXT NOT NULL CHECK (created_at {UTC_TIME})
    ) STRICT""",
)
"""Texts that are not said yet, with the run whose process has them: of a prompt, or of a message for a thread."""

_THOUGHT = ("thought_parts", "thought_tokens", "thought_seconds", "reply_id", "reasoning")

THOUGHTS: tuple[str, ...] = (
    "ALTER TABLE messages ADD COLUMN thought_parts TEXT",
    "ALTER TABLE messages ADD COLUMN thought_tokens INTEGER",
    "ALTER TABLE messages ADD COLUMN thought_seconds REAL",
    "ALTER TABLE messages ADD COLUMN reply_id INTEGER",
    # The calls that a reply ended with follow it in its turn. Rows of an import have no process, and no reply is known.
    """
    UPDATE messages SET reply_id = found.reply_id FROM (
        SELECT id, role, MAX(CASE role WHEN 'assistant' THEN id END) OVER (
            PARTITION BY thread_id, turn_id, introduced_by ORDER BY id ROWS UNBOUNDED PRECEDING
        ) AS reply_id FROM messages
        WHERE turn_id IN (SELECT turn_id FROM messages WHERE role = 'tool_use' AND run IS NOT NULL)
    ) AS found WHERE found.id = messages.id AND found.role = 'tool_use' AND messages.run IS NOT NULL""",
    "DROP TRIGGER messages_changed",
    _counted_changes(" OR ".join([_DIFFERS, *(f"old.{name} IS NOT new.{name}" for name in _THOUGHT)])),
)
"""Replies with their model's thoughts, and calls of tools with the reply that made them.

``reasoning`` is the readable text of the thoughts, ``thought_parts`` JSON of the provider's own parts with the protocol
that they belong to.
"""

_LEFT = "FROM intents WHERE kind = 'persona'"
_LEFT_PERSONA = f"persona IN (SELECT persona {_LEFT})"

NO_INTENTS: tuple[str, ...] = (
    # What the journal knew before the change: the next opening notes what the file says.
    """
    INSERT OR IGNORE INTO meta SELECT 'window:' || persona, json_quote(json_extract(detail, '$.change[0]'))
    FROM intents WHERE kind <> 'persona'
    AND CASE WHEN json_valid(detail) THEN json_type(detail, '$.change[0]') END IS NOT NULL ORDER BY id""",
    # Its folder may be there: without the boundary it would have the messages of an earlier persona.
    f"""
    INSERT INTO operations(persona, kind, after_message_id, detail)
    SELECT DISTINCT persona, 'clear', (SELECT COALESCE(MAX(id), 0) FROM messages), '{{"begins": true}}' {_LEFT}""",
    f"""
    UPDATE context_items SET content_hash = NULL, forgotten_by = COALESCE(
        forgotten_by, (SELECT MAX(id) FROM operations WHERE operations.persona = context_items.persona)
    ) WHERE {_LEFT_PERSONA}""",
    f"DELETE FROM sessions WHERE {_LEFT_PERSONA}",
    f"DELETE FROM meta WHERE key IN (SELECT 'idle_session:' || persona {_LEFT})",
    f"""
    UPDATE threads SET closed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE closed_at IS NULL AND {_LEFT_PERSONA}""",
    f"""
    INSERT OR REPLACE INTO meta SELECT 'threads_before:' || persona,
        (SELECT COALESCE(MAX(id), 0) FROM threads WHERE threads.persona = intents.persona) {_LEFT}""",
    "DROP TABLE intents",
)
"""The end of ``intents``, with those that killed processes have left settled: the journal follows the files."""
