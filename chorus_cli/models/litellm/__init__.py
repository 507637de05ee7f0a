"""Models: the models through litellm."""
