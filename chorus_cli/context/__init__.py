"""The context: the view of the log that a model receives, and all that is said about it.

The view, the plan and the report follow from one `ContextSnapshot`, read in one transaction. A request begins as the
one before, byte for byte, until an operation, a pause or an hour starts it anew; what has no room stays out in steps.
A summary replaces messages by their ids, and only while the view begins with the end of them (`rules/view.standing`).
A memory item is in a request once: in the system message, or in the preamble that first brought it.
"""
