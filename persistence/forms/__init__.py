"""Forms of values outside memory: for each type how it is written and read, whatever the file."""
