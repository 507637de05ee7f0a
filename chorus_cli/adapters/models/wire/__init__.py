"""The wire: the protocols that most providers speak, spoken directly over HTTP."""
