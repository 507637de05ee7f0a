"""The memory: facts kept besides the messages, in four tiers.

Each change is an operation that holds every item before and after.
"""
