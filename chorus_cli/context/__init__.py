"""The context: the view of the log that a model receives, and the reports about it.

The view, the plan and the report are computed from one `ContextSnapshot`, which is read in one transaction. Requests
begin with the same bytes until an operation, a pause or the clock renews the beginning. A summary names the messages
that it replaces by id; `rules/view.standing` decides whether it holds for a view. A memory item is not sent again while
the request has its present wording.
"""
