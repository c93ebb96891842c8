"""Arrays: strings by index, with gaps."""
