"""Encrypted connections; imported once the configuration asks for any."""
