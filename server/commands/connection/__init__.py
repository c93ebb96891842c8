"""The connection, and other connections."""
