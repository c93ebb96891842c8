"""Commands on sorted sets."""
