"""The memory: facts kept beside the messages, in four tiers.

Each change is an operation, which stores the changed parts of every item before and after, so that an undo can restore
the item. Forgetting hides the row of an item; requests leave its text out of preambles and results of tools.
"""
