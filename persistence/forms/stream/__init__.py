"""Streams outside memory."""
