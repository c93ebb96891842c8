"""Why the data refuses: facts without wire text; ``compat`` gives each its line."""

from __future__ import annotations


class StorageError(Exception):
    """The data refuses what was asked of it."""
