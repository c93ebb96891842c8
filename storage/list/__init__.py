"""Lists: packed pieces, with open ends where there are many elements."""
