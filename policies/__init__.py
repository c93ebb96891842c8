"""Policies of streams and groups: limits, retries, dead letters, order and time."""
