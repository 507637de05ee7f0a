"""The command line of ``chorus`` in a shell, and its subcommands."""
