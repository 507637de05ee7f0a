"""Everything that only litellm can reach: imported when such a model is asked."""
