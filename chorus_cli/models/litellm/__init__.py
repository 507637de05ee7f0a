"""Models: the client that asks models through litellm."""
