"""Regions under faults by chance, and a judge of what their clients were told."""
