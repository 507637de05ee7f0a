"""Sessions: copies of a persona's context with a summary, in files.

A save writes the file first and then its row; a file without a row can still be listed and restored. The row has the
ids of the session's threads, messages and summaries, so that another machine with the same log needs no file.
"""
