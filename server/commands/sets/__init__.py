"""Commands on sets."""
