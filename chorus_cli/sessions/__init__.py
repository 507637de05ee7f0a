"""Sessions: copies of a persona's views with a summary, in files.

The file comes first and its row second; a file without a row is found again.
"""
