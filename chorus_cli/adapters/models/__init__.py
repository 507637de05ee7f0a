"""Models: ELIZA, litellm, and what is known of models and servers."""
