"""Configuration: the table of parameters, files and options, CONFIG SET, and what follows."""
