"""Messages to whoever listens."""
