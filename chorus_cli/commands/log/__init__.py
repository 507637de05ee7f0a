"""Commands on the log as a whole: search, costs, exports and imports."""
