"""Models: the models in files, which llama.cpp runs on this machine."""
