"""Rocket Rides: a unified log, whole, between PostgreSQL and a stream. Start with README.md."""
