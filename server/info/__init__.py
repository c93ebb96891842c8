"""The sections of INFO, and reports on memory and latency."""
