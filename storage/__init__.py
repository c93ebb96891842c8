"""The keyspace and its values: plain data, with no clock, no chance, no I/O and no wire text."""
