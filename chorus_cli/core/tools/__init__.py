"""Tools: functions that a model may call, their declarations, and the calls in a reply."""
