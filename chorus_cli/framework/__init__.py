"""Declarations of commands: arguments, completion, help and replies are computed from one function each."""
