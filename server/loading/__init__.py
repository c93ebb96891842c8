"""Loading from the disk into memory: files are read, recorded commands run again."""
