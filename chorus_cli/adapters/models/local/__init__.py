"""Models in files on this machine, run by llama.cpp's server in a process of its own."""
