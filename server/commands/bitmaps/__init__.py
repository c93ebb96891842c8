"""Bitmaps: the bits of strings."""
