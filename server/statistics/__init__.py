"""What the server counts and measures while it runs."""
