"""The server as a whole."""
