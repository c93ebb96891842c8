"""Where a change becomes known."""
