"""Snapshots of Redis (RDB), read to be taken over: strings, streams, deadlines."""
