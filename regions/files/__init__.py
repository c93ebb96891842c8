"""The files of a region: its files of commands, its records in snapshots."""
