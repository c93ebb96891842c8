"""Streams: sealed blocks, an open tail, an index by ID and rank; groups and producers."""
