"""The memory: items kept apart from messages, their scores and tiers, and their way into a request."""
