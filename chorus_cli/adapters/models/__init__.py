"""Models: ELIZA, litellm, and facts about models and servers."""
