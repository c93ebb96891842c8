"""Commands in a region, and the functions of the effects that they make."""
