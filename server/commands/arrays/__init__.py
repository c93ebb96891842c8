"""Arrays: strings by index."""
