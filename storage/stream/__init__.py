"""Streams: sealed blocks, an open tail, and an index over both by ID and by rank."""
