"""Editing in the user's editor, and drafts."""
