"""What is on the disk is brought into memory: files read, recorded commands run again."""
