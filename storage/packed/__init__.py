"""Strings packed into one immutable ``bytes``, and what is built of such pieces."""
