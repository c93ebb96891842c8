"""The append-only file: manifest, incr files, fsync policies and loading."""
