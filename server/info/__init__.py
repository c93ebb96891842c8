"""What the server shows of itself: the sections of INFO, and reports on memory and latency."""
