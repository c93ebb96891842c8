"""Scripts, and functions."""
