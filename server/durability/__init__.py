"""The append-only file and the snapshot at work: committing, rewriting, saving, recovering."""
