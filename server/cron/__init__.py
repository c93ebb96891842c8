"""What happens from time to time, not because a client asked."""
