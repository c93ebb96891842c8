"""Following another server, as a replica of Redis does."""
