"""Sessions: copies of a persona's views with a summary, in files.

A save writes the file first and its row second; a session whose file has no row can still be listed and restored.
"""
