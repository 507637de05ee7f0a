"""The outer command line: one module for each subcommand."""
