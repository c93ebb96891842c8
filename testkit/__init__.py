"""Gives kits for tests what they ask of a server: a moved clock, faults, a clean start."""
