"""Commands on lists."""
