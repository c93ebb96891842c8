"""Streams that several regions write, as records."""
