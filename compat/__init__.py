"""Compatibility with Redis: error texts, kinds of parameters, patterns, numbers, documentation."""
