"""How far a tool has come: a bar on a terminal, nothing anywhere else."""

from __future__ import annotations

from typing import Final

from tqdm import tqdm


class Progress:
    """A bar on standard error, over so many bytes or whatever ``unit`` says."""

    def __init__(self, what: str, total: int, unit: str = "B") -> None:
        self._bar: Final = tqdm(
            desc=what, total=total, unit=unit, unit_scale=True, leave=False, disable=None
        )

    def reach(self, done: int) -> None:
        """So much is done by now."""
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
