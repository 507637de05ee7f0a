"""The commands of the outer command line, a module for each concept, loaded when one of its commands is chosen."""
