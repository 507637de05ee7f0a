"""The files of the context: the open thread of each run, and the ``AGENTS.md`` of the user's folder."""
