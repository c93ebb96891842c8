"""SORT, of lists, sets and sorted sets."""
