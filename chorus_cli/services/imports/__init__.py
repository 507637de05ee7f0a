"""Conversations that come in from other programs, and conversations that go out to files."""
