"""Replication as Redis has it: others copy this server's data, or it copies theirs."""
