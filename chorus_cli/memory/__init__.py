"""The memory: facts kept besides the messages, in four tiers.

Each change is an operation that holds every item before and after, so that an undo restores it, or refuses if the
item changed since. A forgotten item is a hidden row; preambles and tool results lose it when rows are read.
"""
