"""Sorted sets: members with scores, in the order of the scores."""
