"""Time: lengths and moments as people type them, and as the log writes them."""
