"""Sessions: copies of a persona's views with a summary, in files.

A save writes the file first and its row second; a session whose file has no row can still be listed and restored. The
row has the ids of what the session has, so that another machine with the log needs no file.
"""
