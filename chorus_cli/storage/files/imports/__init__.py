"""Files of other programs: containers, one module for each format, and their detection by content."""
