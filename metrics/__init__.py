"""Metrics of the server and its streams for Prometheus, at a port of their own."""
