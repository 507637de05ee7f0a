"""The context in the user's editor, and text that is not said yet.

An edited text is compared with the rows that it was made of; a message without a change keeps its row. If another
operation changed the context meanwhile, the edit is refused and its draft is kept. The last message of a turn, edited
alone, is replaced as by a retry, with no new boundary; any other message by an edit of the context. The table `outbox`
has input that is being typed, messages that wait and texts that the log refused; while no row can be written, a file
has them.
"""
