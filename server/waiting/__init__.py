"""Clients that wait for keys, and who is served next."""
