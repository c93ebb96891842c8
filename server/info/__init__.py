"""What the server shows of itself: INFO, statistics, slow commands, latency, memory."""
