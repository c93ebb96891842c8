"""The append-only file at work: committing a turn, loading, rewriting, waiting for syncs."""
