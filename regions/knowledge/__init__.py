"""The shared knowledge of regions: which one wrote and knows which records, and their order."""
