"""The SQL statements of migration steps for memory items, for operations on them, and for the vectors of messages."""

from __future__ import annotations

from chorus_cli.storage.schema import UNSTEMMED, WORDS_OF_ITEMS

MEMORY: tuple[str, ...] = (
    "ALTER TABLE context_items ADD COLUMN token_count INTEGER",
    "ALTER TABLE context_items ADD COLUMN forgotten_by INTEGER",
    "CREATE INDEX context_items_by_importance ON context_items(persona, importance_score DESC, last_accessed DESC)",
    "CREATE INDEX context_items_by_access ON context_items(persona, last_accessed DESC)",
    "CREATE INDEX context_items_forgotten ON context_items(persona, forgotten_by) WHERE forgotten_by IS NOT NULL",
    # Reading a context skips operations on the memory, which may be many.
    "CREATE INDEX operations_of_context ON operations(persona) WHERE kind NOT IN ('flash', 'memory')",
    WORDS_OF_ITEMS.format(tokenizer=UNSTEMMED),
    # An item that was put in or changed with plain SQL has no hash, and is indexed when the items are next read. The
    # trigger cannot write the index itself: SQLite refuses that while ``trusted_schema`` is off.
    """
    CREATE TRIGGER context_items_reworded AFTER UPDATE OF content ON context_items
    WHEN new.content <> old.content AND new.content_hash = old.content_hash BEGIN
        UPDATE context_items SET content_hash = NULL, token_count = NULL WHERE id = new.id;
    END""",
    "UPDATE context_items SET content_hash = NULL",
)
"""Adds ``token_count`` and ``forgotten_by``, the operation that hides an item; makes the full-text index of items."""

_READ = "CASE WHEN json_valid(detail) THEN detail ELSE '{}' END"

SOURCES: tuple[str, ...] = (
    """
    ALTER TABLE context_items ADD COLUMN source TEXT NOT NULL DEFAULT 'you'
        CHECK (source IN ('you', 'model', 'message', 'output', 'file'))""",
    f"""
    UPDATE context_items SET source = CASE found.change
        WHEN 'import' THEN 'file' WHEN 'add' THEN 'model' ELSE iif(source_message_id IS NULL, 'output', 'message') END
    FROM (
        SELECT json_extract(item.value, '$.id') AS id, json_extract({_READ}, '$.change') AS change, MIN(operations.id)
        FROM operations, json_each({_READ}, '$.items') AS item
        WHERE kind = 'memory' AND json_extract({_READ}, '$.change') IN ('add', 'import', 'capture') GROUP BY 1
    ) AS found WHERE found.id = context_items.id AND (found.change <> 'add' OR source_message_id IS NOT NULL)""",
)
"""Adds the source of each memory item."""

REPLACEMENTS: tuple[str, ...] = (
    "ALTER TABLE context_items ADD COLUMN replaced_by INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE context_items ADD COLUMN may_replace INTEGER NOT NULL DEFAULT 0",
    # A fact may become true again, so a new item may have the same words as a replaced item.
    "DROP INDEX context_items_once",
    "CREATE UNIQUE INDEX context_items_once ON context_items(persona, content_hash) WHERE replaced_by = 0",
    "ALTER TABLE context_items RENAME COLUMN source TO source_before",
    """
    ALTER TABLE context_items ADD COLUMN source TEXT NOT NULL DEFAULT 'you'
        CHECK (source IN ('you', 'model', 'file', 'tool', 'import'))""",
    """
    UPDATE context_items SET source = CASE source_before WHEN 'message' THEN COALESCE((
        SELECT CASE WHEN kind = 'import' THEN 'import' WHEN role = 'user' THEN 'you' ELSE 'model' END
        FROM messages LEFT JOIN operations ON operations.id = introduced_by WHERE messages.id = source_message_id
    ), 'you') WHEN 'output' THEN 'tool' ELSE source_before END""",
    "ALTER TABLE context_items DROP COLUMN source_before",
)
"""Adds each item's successor and the item that it may replace; ``source`` now says whose words the item has."""

HASHED = "hashed"
"""The SQL function that returns the hash of a command, given as the bytes of its text."""

COMMANDS: tuple[str, ...] = (
    f"""
    UPDATE operations SET detail = json_set(
        detail, '$.command', {HASHED}(CAST(json_extract(detail, '$.command') AS BLOB))
    ) WHERE kind = 'memory' AND json_type({_READ}, '$.command') = 'text' AND (
        length(json_extract({_READ}, '$.command')) <> 64 OR json_extract({_READ}, '$.command') GLOB '*[^0-9a-f]*'
    )""",
)
"""Replaces the commands in captures by their hashes of 64 digits, because a command may contain a password."""

VECTORS: tuple[str, ...] = (
    "CREATE TABLE message_vectors(message_id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) STRICT",
    # A change or purge of a message's words also deletes the vector of the old words.
    """
    CREATE TRIGGER message_vectors_outdated AFTER UPDATE OF content ON messages
    WHEN old.content IS NOT new.content BEGIN
        DELETE FROM message_vectors WHERE message_id = old.id;
    END""",
)
"""Makes ``message_vectors``: the vector that ``model`` makes of a message, one signed byte for each dimension."""
