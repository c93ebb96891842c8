"""A value that several regions change: what others ask of it without knowing its type."""

from __future__ import annotations

from mypy_extensions import trait

from headrace.storage.regions.vectors import LaneVector
from headrace.storage.value import Value


@trait
class Replicated:
    """A value of which every region has a copy."""

    def seen(self) -> LaneVector:
        """How far each of its lanes reaches here, those left out that a removal has covered."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether there is a value: it may be remembered all the same."""
        raise NotImplementedError

    def plain(self) -> Value:
        """An equal value that one server alone has, without what only regions need."""
        raise NotImplementedError
