"""The screen: all output, safe and guarded."""
