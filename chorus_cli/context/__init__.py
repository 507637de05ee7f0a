"""The context: the view of the log that a model receives, and the reports about it.

The view, the plan and the report are computed from one `ContextSnapshot`, which is read in one transaction. Requests
begin with the same bytes until an operation, a pause or the clock renews the beginning. A summary lists the ids of the
messages that it replaces; `rules/view.standing` decides whether the summary holds for a view. A memory item is not sent
again while the request contains its present wording.
"""
