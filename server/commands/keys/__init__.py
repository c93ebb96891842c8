"""Keys of any type, their deadlines, and databases."""
