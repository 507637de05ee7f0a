"""The context: the view of the log that a model receives, and the reports about it.

One transaction reads a `ContextSnapshot`; the view, the plan and the report are computed from it. The requests of a
thread begin with the same bytes until `service/context.Prefixes` renews the start of the window. A summary lists the
ids of the messages that it replaces; `rules/view.standing` decides whether the summary holds for a view. A memory item
is not sent again while the request contains the item's present wording.
"""
