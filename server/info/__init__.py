"""What the server can tell of itself: INFO, statistics, slow commands, latency, memory."""
