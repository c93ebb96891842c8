"""Strings: plain bytes and integers in the keyspace, and the face they have."""
