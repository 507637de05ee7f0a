"""The context in the user's editor, and text that is not said yet.

An edited text is compared with the rows that it was made from; a message without a change keeps its row. If another
operation changed the context meanwhile, the edit is refused and its draft is kept. An edit sets a boundary, with one
exception: `/edit` of a turn's last message is a retry, unless the message was summarised, or put in by an operation
other than a pin. The table `outbox` keeps input that is being typed, messages that wait and texts that the log refused.
If the table cannot be written, a file keeps these texts.
"""
