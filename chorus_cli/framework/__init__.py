"""Declarations of commands: a command is one function, from which its arguments, completion and help are computed."""
