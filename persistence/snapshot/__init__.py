"""Snapshots: the keyspace as one file, written and read without decoding entries."""
