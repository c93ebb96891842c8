"""Which epoch and generation a region starts with, and whether it may write at once.

A number stands for one record only. So an epoch goes on where it is certain that nothing of it is
missing: the files are whole, and all other regions have said that they know no more of it. In doubt
another one begins. IDs have to be unique, too, even against entries that are lost and were never
sent. So where entries may be lost, another generation begins, which stands in every ID.

What others have forgotten rests on what this region had reported to have. Where its files may
be older than that, or are gone, it takes no writes until it knows all that the others do.

This decides. It asks nobody, and there is no clock here; see ``regions.exchange.door``.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import AASTART, AASYNCING
from headrace.regions.exchange.catching import refusal_of
from headrace.regions.knowledge.region import Region, latest_epoch
from headrace.storage.vectors import Numbers

# What the files are
NONE: Final = 0  # there is no data
ADOPTED: Final = 1  # a single server's
WHOLE: Final = 2  # the region's, and nothing that it has written is missing
CUT: Final = 3  # the region's, and their end may be missing
MOVED: Final = 4  # the region's, but of an unknown time: copied or restored

SECOND_MS: Final = 1000  # no two lives of a region begin within one, even if nobody can be asked
EPOCHS_SINCE_MS: Final = 1_767_225_600_000  # 2026-01-01, from which on epochs are counted


class Forgotten(Exception):
    """The region must not start with the data that it has; the text says why."""


class Answer:
    """What another region has answered.

    Attributes:
        numbers: what it knows.
        remembered: the nonce of the epoch that it was asked about; empty where it remembers none.
        is_twin: it has met another region of this number in the same epoch.
        forgotten: in which epoch it has forgotten this region; -1 where it has not.
    """

    def __init__(self, numbers: Numbers) -> None:
        self.numbers: Final = numbers
        self.remembered = b""
        self.is_twin = False
        self.forgotten = -1


class Start:
    """What was decided.

    Attributes:
        epoch, generation: to begin with.
        goes_on: the epoch is the one before, and goes on.
        refusal: why no writes are taken so far, as an error line; empty where they are.
        reason: for the log.
    """

    def __init__(self, epoch: int, generation: int, refusal: bytes, reason: str) -> None:
        self.epoch: Final = epoch
        self.generation: Final = generation
        self.goes_on = False
        self.refusal: Final = refusal
        self.reason: Final = reason


def decide(
    region: Region, files: int, asked: list[int], answers: dict[int, Answer], now_ms: int
) -> Start:
    """Return how a region starts whose files have been loaded.

    Args:
        region: what the files say.
        files: what they are.
        asked: the other members.
        answers: of those that have answered in time.
        now_ms: the time of day.

    Raises:
        Forgotten: it must not.
    """
    answered = all(member in answers for member in asked)
    _refuse_forgotten(region, files, answers)
    known = max(
        [latest_epoch(answer.numbers, region.id) for answer in answers.values()], default=-1
    )
    if _remember_another(region, answers):
        known = max(known, region.epoch)  # even where it has written nothing
    forgotten = max([answer.forgotten for answer in answers.values()], default=-1)
    if files == NONE:
        if answered and known < 0 and forgotten < 0 and not _know_anything(answers):
            return Start(0, 0, b"", "all begins")
        if answered and known < 0 and forgotten < 0:
            return Start(0, 0, AASYNCING, "it joins the others")
        epoch = _next_epoch(max(known, forgotten), now_ms)
        return Start(epoch, 0, AASYNCING, "there is no data, and others may know some of it")
    if files == ADOPTED:
        if known >= 0:
            raise Forgotten(
                f"others know of a region {region.id} already: give the data of a single server "
                "another number (aa-region-id)"
            )
        if _know_anything(answers):
            return Start(0, 0, AASYNCING, "it joins the others with data of a single server")
        return Start(0, 0, b"", "the data of a single server becomes a region's")
    epoch = _next_epoch(max(known, region.epoch, forgotten), now_ms)
    generation = region.generation
    lacking = refusal_of(region)
    if files == MOVED:
        return Start(epoch, generation + 1, AASTART, "its files were copied or restored")
    if files == CUT:
        return Start(epoch, generation + 1, lacking, "the end of its file may be missing")
    if _know_more(region, answers):
        return _later(region, max(known, forgotten), now_ms)
    if not answered:
        silent = ", ".join([str(member) for member in asked if member not in answers])
        reason = f"not all others have answered: {silent} has not"
        return Start(epoch, generation, lacking, reason)
    start = Start(region.epoch, generation, lacking, "its epoch goes on")
    start.goes_on = True
    return start


def begin_later(region: Region, known: Numbers, now_ms: int) -> Start:
    """Return how a region goes on that has begun, and of which another one knows more.

    Args:
        known: what that one knows.
        now_ms: the time of day.
    """
    return _later(region, latest_epoch(known, region.id), now_ms)


def _later(region: Region, known: int, now_ms: int) -> Start:
    epoch = _next_epoch(max(known, region.epoch), now_ms)
    return Start(epoch, region.generation + 1, AASTART, "others know more of it than its files")


def _refuse_forgotten(region: Region, files: int, answers: dict[int, Answer]) -> None:
    if files == NONE:
        return
    for member, answer in answers.items():
        if answer.forgotten >= 0:
            raise Forgotten(
                f"region {member} has forgotten region {region.id}, which can only come back as a "
                "new one: start with an empty folder"
            )


def _know_anything(answers: dict[int, Answer]) -> bool:
    return any(answer.numbers for answer in answers.values())


def _remember_another(region: Region, answers: dict[int, Answer]) -> bool:
    """Return whether another region has met one of this number and epoch that had another nonce."""
    for answer in answers.values():
        if answer.is_twin or answer.remembered not in (b"", region.nonce):
            return True
    return False


def _know_more(region: Region, answers: dict[int, Answer]) -> bool:
    """Return whether another region has met more of this one than the files say, or another one."""
    if _remember_another(region, answers):
        return True
    return any(region.is_outdone(answer.numbers) for answer in answers.values())


def _next_epoch(known: int, now_ms: int) -> int:
    """An epoch above all that are known, and above those that nobody has reported."""
    return max(known + 1, (now_ms - EPOCHS_SINCE_MS) // SECOND_MS)
