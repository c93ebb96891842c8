"""Data on the disk: the append-only folder, snapshots, and the forms of values in both."""
