"""The process that a server runs in: start, signals, supervisor, limits of the system."""
