"""Models: ELIZA, the wire, files, litellm, and facts about models and servers."""
