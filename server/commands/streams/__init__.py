"""Streams, consumer groups and idempotent producers."""
