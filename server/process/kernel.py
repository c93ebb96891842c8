"""What the configuration asks of the kernel: when to end the process, and which pages to use."""

from __future__ import annotations

from typing import Final

from headrace.server.config.config import Config
from headrace.server.log import log

OOM_SCORE_FILE: Final = "/proc/self/oom_score_adj"
HUGE_PAGES_FILE: Final = "/sys/kernel/mm/transparent_hugepage/enabled"
MOST_SCORE: Final = 1000
NOT_APPLIED: Final = "Failed to apply new oom_score_adj configuration, check server logs."
_PR_SET_THP_DISABLE: Final = 41


class OomScore:
    """How early the kernel ends this process when memory is short (``oom-score-adj``).

    The first of ``oom-score-adj-values`` is that of a server that copies from no other. The two
    behind it are of replicas and of processes that save, and there are neither.
    """

    def __init__(self, config: Config) -> None:
        self._config: Final = config
        self._first: int | None = None  # the score before the first change
        self._last: int | None = None

    def start(self) -> None:
        """Apply the configuration, now and after each change."""
        self._config.on_change["oom-score-adj"] = self._apply
        self._config.on_change["oom-score-adj-values"] = self._apply
        self._apply()

    def _apply(self) -> str | None:
        config = self._config
        if config.oom_score_adj == b"no" and self._first is None:
            return None
        try:
            if self._first is None:
                with open(OOM_SCORE_FILE, "rb") as file:
                    self._first = int(file.read())
            score = self._first
            if config.oom_score_adj != b"no":
                value = config.oom_score_adj_values[0]
                score = value if config.oom_score_adj == b"absolute" else score + value
            score = max(-MOST_SCORE, min(MOST_SCORE, score))
            if score != self._last:
                with open(OOM_SCORE_FILE, "wb") as file:
                    file.write(b"%d" % score)
            self._last = score
        except OSError as error:
            log.warning("oom_score_adj cannot be set: %s", error)
            return NOT_APPLIED
        return None


def disable_huge_pages() -> None:
    """Keep the kernel from backing memory of this process by huge pages on its own.

    They make a process that holds many small values larger, and its answers uneven.
    """
    try:
        with open(HUGE_PAGES_FILE, "rb") as file:
            always = b"[always]" in file.read()
    except OSError:
        return
    if not always:
        return
    from ctypes import CDLL  # late: few systems need it

    if CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0):
        log.warning("Transparent huge pages cannot be turned off for this process")
