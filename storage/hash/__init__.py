"""Hashes: fields with their values, some of which may expire by themselves."""
