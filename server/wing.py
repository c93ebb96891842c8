"""The wing of regions: the one place from which it is imported, where it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.server.active_active import ActiveActive


def active_active() -> ActiveActive:
    """Return the features of regions; all of them are registered when this returns."""
    from headrace.regions.wing import Wing

    return Wing()
