"""The SQL statements of the migrations, which create and change all tables.

Most columns have a default or may be NULL, so that a row can be put in with plain SQL. Times are UTC text and are
compared as text. ``UTC_TIME`` checks only the shape of a time, so it accepts times that do not exist.
"""

from __future__ import annotations

UTC_TIME = "GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z'"
"""The condition for a column that holds a time."""

UNSTEMMED = "unicode61 remove_diacritics 2"
"""A tokenizer that keeps words unstemmed, but in lower case and without accents."""

TOKENIZER = f"porter {UNSTEMMED}"
"""The tokenizer of the full-text indexes, which stems English words."""

_WORDS_OF_MESSAGES = """
    CREATE VIRTUAL TABLE message_words USING fts5(
        content, content='messages', content_rowid='id', tokenize='{tokenizer}'
    )"""
WORDS_OF_ITEMS = "CREATE VIRTUAL TABLE context_item_words USING fts5(content, tokenize='{tokenizer}')"

MESSAGE_WORDS = _WORDS_OF_MESSAGES.format(tokenizer=TOKENIZER)
"""The full-text index of messages, which is filled after they are stored."""

ITEM_WORDS = WORDS_OF_ITEMS.format(tokenizer=TOKENIZER)
"""The full-text index of memory items. Both indexes contain texts as `set_apart` returns them."""

LOG_AND_JOURNAL: tuple[str, ...] = (
    f"""
    CREATE TABLE threads(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME}),
        closed_at TEXT CHECK (closed_at {UTC_TIME})
    ) STRICT""",
    "CREATE INDEX threads_of_persona ON threads(persona)",
    f"""
    CREATE TABLE messages(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        thread_id INTEGER NOT NULL,
        turn_id INTEGER,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool_use', 'tool_result')),
        content TEXT NOT NULL DEFAULT '',
        preamble TEXT NOT NULL DEFAULT '',
        tool_calls TEXT,
        tool_call_id TEXT,
        timestamp TEXT NOT NULL CHECK (timestamp {UTC_TIME}),
        status TEXT NOT NULL DEFAULT 'complete'
            CHECK (status IN ('complete', 'streaming', 'interrupted', 'truncated', 'failed')),
        run TEXT,
        model TEXT,
        token_count INTEGER,
        usage TEXT,
        introduced_by INTEGER,
        revises INTEGER,
        checksum TEXT
    ) STRICT""",
    "CREATE INDEX messages_of_thread ON messages(thread_id, timestamp)",
    "CREATE INDEX messages_of_persona ON messages(persona, timestamp)",
    "CREATE INDEX messages_streaming ON messages(run) WHERE status = 'streaming'",
    f"""
    CREATE TABLE operations(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        thread_id INTEGER,
        kind TEXT NOT NULL
            CHECK (kind IN ('clear', 'edit', 'restore', 'retry', 'window', 'compact', 'flash', 'undo', 'redo')),
        after_message_id INTEGER NOT NULL DEFAULT 0,
        detail TEXT NOT NULL DEFAULT '{{}}',
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME})
    ) STRICT""",
    "CREATE INDEX operations_of_persona ON operations(persona)",
    """
    CREATE TABLE operation_members(
        operation_id INTEGER NOT NULL REFERENCES operations(id),
        position INTEGER NOT NULL,
        message_id INTEGER NOT NULL REFERENCES messages(id),
        PRIMARY KEY (operation_id, position)
    ) STRICT, WITHOUT ROWID""",
    f"""
    CREATE TABLE summaries(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        operation_id INTEGER NOT NULL REFERENCES operations(id),
        persona TEXT NOT NULL,
        thread_id INTEGER NOT NULL,
        base_operation_id INTEGER,
        first_message_id INTEGER NOT NULL,
        through_message_id INTEGER NOT NULL,
        content TEXT NOT NULL,
        token_count INTEGER,
        model TEXT,
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME})
    ) STRICT""",
    "CREATE INDEX summaries_of_thread ON summaries(thread_id)",
    f"""
    CREATE TABLE sessions(
        persona TEXT NOT NULL,
        session_id TEXT NOT NULL,
        timestamp TEXT NOT NULL CHECK (timestamp {UTC_TIME}),
        description TEXT NOT NULL DEFAULT '',
        summary TEXT NOT NULL DEFAULT '',
        message_count INTEGER NOT NULL DEFAULT 0,
        token_estimate INTEGER NOT NULL DEFAULT 0,
        window_start TEXT CHECK (window_start {UTC_TIME}),
        window_end TEXT CHECK (window_end {UTC_TIME}),
        through_message_id INTEGER,
        trigger TEXT NOT NULL DEFAULT 'manual',
        file_path TEXT NOT NULL,
        PRIMARY KEY (persona, session_id)
    ) STRICT""",
    f"""
    CREATE TABLE context_items(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        item_type TEXT NOT NULL CHECK (item_type IN ('TASK', 'CODE', 'ERROR', 'TEST_RESULT', 'PRD_SECTION')),
        content TEXT NOT NULL,
        importance_score REAL NOT NULL DEFAULT 0.5 CHECK (importance_score BETWEEN 0.0 AND 1.0),
        tier TEXT NOT NULL DEFAULT 'WARM' CHECK (tier IN ('HOT', 'WARM', 'COLD', 'ARCHIVED')),
        pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
        access_count INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME}),
        last_accessed TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (last_accessed {UTC_TIME}),
        source_message_id INTEGER,
        content_hash TEXT
    ) STRICT""",
    "CREATE INDEX context_items_of_tier ON context_items(persona, tier)",
    "CREATE UNIQUE INDEX context_items_once ON context_items(persona, content_hash)",
    f"""
    CREATE TABLE context_checkpoints(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        checkpoint_data TEXT NOT NULL,
        items_count INTEGER NOT NULL DEFAULT 0,
        items_archived INTEGER NOT NULL DEFAULT 0,
        hot_items_retained INTEGER NOT NULL DEFAULT 0,
        token_count INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME})
    ) STRICT""",
    "CREATE INDEX context_checkpoints_of_persona ON context_checkpoints(persona, created_at)",
    f"""
    CREATE TABLE input_history(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME})
    ) STRICT""",
    "CREATE INDEX input_history_of_persona ON input_history(persona)",
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    _WORDS_OF_MESSAGES.format(tokenizer=UNSTEMMED),
)

ACTS_OF_ANY_KIND: tuple[str, ...] = (
    # Each row is put back with its id, so references to it hold again when the step is committed.
    "PRAGMA defer_foreign_keys = ON",
    "CREATE TABLE operations_before AS SELECT * FROM operations",
    "CREATE TABLE sequence_before AS SELECT name, seq FROM sqlite_sequence WHERE name = 'operations'",
    "DROP TABLE operations",
    f"""
    CREATE TABLE operations(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        persona TEXT NOT NULL,
        thread_id INTEGER,
        kind TEXT NOT NULL,
        after_message_id INTEGER NOT NULL DEFAULT 0,
        detail TEXT NOT NULL DEFAULT '{{}}',
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) CHECK (created_at {UTC_TIME})
    ) STRICT""",
    "INSERT INTO sqlite_sequence(name, seq) SELECT name, seq FROM sequence_before",
    """
    INSERT INTO operations(id, persona, thread_id, kind, after_message_id, detail, created_at)
    SELECT id, persona, thread_id, kind, after_message_id, detail, created_at FROM operations_before ORDER BY id""",
    "CREATE INDEX operations_of_persona ON operations(persona)",
    "DROP TABLE operations_before",
    "DROP TABLE sequence_before",
)
"""Makes ``operations`` anew without the CHECK on ``kind``: only ``log/rules/acts`` lists the kinds."""

ORIGIN_OF = "origin_of"
"""The SQL function that makes a log's name from the persona, time and content of its first message."""


def _numbering(table: str) -> tuple[str, ...]:
    """Return the statements that number a table's rows per persona: present rows now, and new rows by a trigger."""
    return (
        f"ALTER TABLE {table} ADD COLUMN number INTEGER",
        f"""
        UPDATE {table} SET number = counted.number FROM (
            SELECT id, ROW_NUMBER() OVER (PARTITION BY persona ORDER BY id) AS number FROM {table}
        ) AS counted WHERE counted.id = {table}.id""",
        f"INSERT INTO numbers SELECT persona, '{table}', MAX(number) FROM {table} GROUP BY persona",
        f"CREATE UNIQUE INDEX {table}_by_number ON {table}(persona, number)",
        # Not an upsert: the conflict clause of the INSERT that fired the trigger would override the upsert's own.
        f"""
        CREATE TRIGGER {table}_numbered AFTER INSERT ON {table} BEGIN
            INSERT OR IGNORE INTO numbers VALUES (new.persona, '{table}', 0);
            UPDATE numbers SET newest = newest + 1 WHERE persona = new.persona AND counted = '{table}';
            UPDATE {table} SET number = (SELECT newest FROM numbers WHERE persona = new.persona AND counted = '{table}')
            WHERE id = new.id;
        END""",
    )


NUMBERS: tuple[str, ...] = (
    # The newest number is stored apart from the rows, so that the number of a deleted row is not used again.
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
"""Gives ``threads`` and ``operations`` numbers for the user, and adds missing threads that messages refer to."""


def _origin(table: str) -> tuple[str, ...]:
    """Return the statements that store for each row of a table which installation made it, and its id there."""
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
    # A log with messages is named by its first message, as earlier imports named it; other logs get a random name.
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
"""Adds the origin of each row, attachments of messages, and the tables of conversations from other programs.

An imported message is ``superseded`` if it is not on the branch with which its conversation ended.
"""

BRANCHES: tuple[str, ...] = ("ALTER TABLE imported_messages ADD COLUMN parent TEXT",)
"""Keeps the predecessor of each imported message, so that an export can rebuild the branches."""

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
"""Counts changes of finished messages, so that a reader may keep the messages in memory until the count changes."""

PURGES: tuple[str, ...] = (
    "ALTER TABLE messages ADD COLUMN purged_by INTEGER",
    "ALTER TABLE context_items ADD COLUMN purged_by INTEGER",
    # A purge and later imports look up the purged rows, which are few; the index has no others.
    "CREATE INDEX messages_purged ON messages(origin, origin_seq) WHERE purged_by IS NOT NULL",
)
"""Adds to each message and memory item the id of the purge that has overwritten it; no list shows purged rows."""

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
"""Makes ``intents``, which keeps each change of a file until the journal has a row for the change.

``before`` and ``after`` are hashes of the file.
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
"""Makes ``other_requests``: the usage of requests whose answers are not messages, such as requests for summaries."""

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
"""Makes ``outbox``: unsent texts at a prompt and messages that wait for a thread, each with the run that owns it."""

_THOUGHT = ("thought_parts", "thought_tokens", "thought_seconds", "reply_id", "reasoning")
MESSAGE_DIFFERS = " OR ".join([_DIFFERS, *(f"old.{name} IS NOT new.{name}" for name in _THOUGHT)])
"""The condition that an update changes a column that readers of messages use."""

THOUGHTS: tuple[str, ...] = (
    "ALTER TABLE messages ADD COLUMN thought_parts TEXT",
    "ALTER TABLE messages ADD COLUMN thought_tokens INTEGER",
    "ALTER TABLE messages ADD COLUMN thought_seconds REAL",
    "ALTER TABLE messages ADD COLUMN reply_id INTEGER",
    # A reply's calls follow it in the same turn. Imported rows have no ``run``, and their calls get no ``reply_id``.
    """
    UPDATE messages SET reply_id = found.reply_id FROM (
        SELECT id, role, MAX(CASE role WHEN 'assistant' THEN id END) OVER (
            PARTITION BY thread_id, turn_id, introduced_by ORDER BY id ROWS UNBOUNDED PRECEDING
        ) AS reply_id FROM messages
        WHERE turn_id IN (SELECT turn_id FROM messages WHERE role = 'tool_use' AND run IS NOT NULL)
    ) AS found WHERE found.id = messages.id AND found.role = 'tool_use' AND messages.run IS NOT NULL""",
    "DROP TRIGGER messages_changed",
    _counted_changes(MESSAGE_DIFFERS),
)
"""Adds the model's thoughts to replies, and the id of the reply to each tool call that the reply made.

``reasoning`` is the readable text of the thoughts. ``thought_parts`` is JSON with the provider's own parts and their
protocol.
"""

_LEFT = "FROM intents WHERE kind = 'persona'"
_LEFT_PERSONA = f"persona IN (SELECT persona {_LEFT})"

NO_INTENTS: tuple[str, ...] = (
    # Keep the window that the journal knew before the change. If the file differs, the next start notes the change.
    """
    INSERT OR IGNORE INTO meta SELECT 'window:' || persona, json_quote(json_extract(detail, '$.change[0]'))
    FROM intents WHERE kind <> 'persona'
    AND CASE WHEN json_valid(detail) THEN json_type(detail, '$.change[0]') END IS NOT NULL ORDER BY id""",
    # The new persona's folder may exist. Without a boundary, that persona would see messages of an earlier one.
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
"""Settles the intents that killed processes left, so that the journal agrees with the files, and drops ``intents``."""


SET_APART = "set_apart"
"""The SQL function that calls `chorus_cli.core.text.apart.set_apart`."""

STEMS: tuple[str, ...] = (
    "DROP TABLE IF EXISTS message_words",
    MESSAGE_WORDS,
    "DROP TABLE IF EXISTS context_item_words",
    ITEM_WORDS,
    f"INSERT INTO context_item_words(rowid, content) SELECT id, {SET_APART}(content) FROM context_items",
)
"""Makes the full-text indexes anew with stems. The index of messages is filled later, in the background."""

SESSION_CONTENTS: tuple[str, ...] = ("ALTER TABLE sessions ADD COLUMN contents TEXT NOT NULL DEFAULT ''",)
"""Adds the ids of each session's contents (JSON, "" if unknown), so that a session is restored without its file."""

RUNS_OF_OPERATIONS: tuple[str, ...] = ("ALTER TABLE operations ADD COLUMN run TEXT",)
"""Adds the run that made each operation; only a server fills it in, so that other machines can show the origin."""

OTHER_INSTALLATIONS: tuple[str, ...] = ("CREATE TABLE other_installations(origin TEXT NOT NULL) STRICT",)
"""Makes the list of this machine's other installations: each log is an installation, and all share the settings."""
