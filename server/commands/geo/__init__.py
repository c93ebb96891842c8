"""Commands on places: sorted sets whose scores are places."""
