"""The context in the user's editor, and text that is not said yet.

An edited text is compared with the rows it was made of; an untouched message stays the row that it is. If anything
else changed the context meanwhile, the edit gives way and its draft is kept. What is typed, waits, or was refused by
the log is in the table `outbox`, in a file only while the database takes nothing.
"""
