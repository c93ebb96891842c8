"""Configuration: the table of parameters, files and options, and CONFIG SET."""
