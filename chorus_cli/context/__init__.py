"""The context: the view of the log that a model is sent, and all that is said about it.

The view, the plan and the report follow from one `ContextSnapshot`, read in one transaction.
"""
