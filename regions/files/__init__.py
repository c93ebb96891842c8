"""What is kept of a region on the disk: its files of commands, its records in snapshots."""
