"""The statements of the migrations: the tables of the log and the journal and those beside them.

Every column but the identifying ones has a default or may be NULL, so that a row can be put in with plain SQL.
Times are UTC text; the pattern only keeps out what could not be compared as text.
"""

from __future__ import annotations

UTC_TIME = "GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z'"
"""The condition for a column that holds a time."""

MESSAGE_WORDS = """
    CREATE VIRTUAL TABLE message_words USING fts5(
        content, content='messages', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
    )"""

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
    MESSAGE_WORDS,
)

ACTS_OF_ANY_KIND: tuple[str, ...] = (
    # The rows go out and come back under their ids, so the references to them hold again when the step is committed.
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
"""``operations`` without a list of kinds: ``core/log/acts`` alone knows them."""

ITEM_WORDS = "CREATE VIRTUAL TABLE context_item_words USING fts5(content, tokenize='unicode61 remove_diacritics 2')"
"""The words of memory items, which it holds as ``core/log/search_query.set_apart`` writes them."""

MEMORY: tuple[str, ...] = (
    "ALTER TABLE context_items ADD COLUMN token_count INTEGER",
    "ALTER TABLE context_items ADD COLUMN forgotten_by INTEGER",
    "CREATE INDEX context_items_by_importance ON context_items(persona, importance_score DESC, last_accessed DESC)",
    "CREATE INDEX context_items_by_access ON context_items(persona, last_accessed DESC)",
    "CREATE INDEX context_items_forgotten ON context_items(persona, forgotten_by) WHERE forgotten_by IS NOT NULL",
    # Reading a context passes over the operations on the memory, which may be many.
    "CREATE INDEX operations_of_context ON operations(persona) WHERE kind NOT IN ('flash', 'memory')",
    ITEM_WORDS,
    # An item without a hash was put in or changed with plain SQL, and is indexed when it is next read. A trigger cannot
    # write the index itself: SQLite refuses that while a schema is not trusted.
    """
    CREATE TRIGGER context_items_reworded AFTER UPDATE OF content ON context_items
    WHEN new.content <> old.content AND new.content_hash = old.content_hash BEGIN
        UPDATE context_items SET content_hash = NULL, token_count = NULL WHERE id = new.id;
    END""",
    "UPDATE context_items SET content_hash = NULL",
)
"""``context_items`` with token counts and the operation that hides an item, and the words of the items."""
