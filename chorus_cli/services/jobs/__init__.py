"""Jobs: commands of the shell, in the foreground and behind the conversation."""
