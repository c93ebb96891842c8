"""The counters and measurements of the running server."""
