"""Models of litellm."""
