"""Time: moments, windows and lengths of time, as users write them and as they are stored."""
