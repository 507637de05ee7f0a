"""Jobs: commands of the shell, their bounded output, their ends, and the words about them."""
