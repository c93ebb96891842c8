"""What we owe to Redis: error texts, command metadata, configuration names, pattern rules."""
