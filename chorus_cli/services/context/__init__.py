"""The context now: measured, reported, widened and narrowed."""
