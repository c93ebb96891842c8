"""The settings and deletions that a stream remembers beside its entries.

Every region may change a setting, and the last one wins. A setting that was made without knowing
another one is concurrent with it. Then the higher version stands, which is one more than all that
its maker knew. A deletion takes away the settings that its maker had seen, and only those. So what
might come to stand after a deletion has to be remembered: the last setting of each origin. Earlier
ones of an origin go with its last at the latest. Deletions are remembered so that nothing that they
removed comes back.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.storage.vectors import ID, Dot, Numbers, covers, origin_key

NO_DEADLINE: Final = -1  # of a setting of the deadline: it never expires
DEL: Final = 0
EXPIRE: Final = 1


class Setting:
    """One setting.

    Attributes:
        dot: the record that made it.
        version: one more than its maker knew.
        first, second: its numbers; ``second`` is 0 where there is only one.
    """

    def __init__(self, dot: Dot, version: int, first: int, second: int = 0) -> None:
        self.dot: Final = dot
        self.version: Final = version
        self.first: Final = first
        self.second: Final = second


_NO_SETTINGS: Final[dict[bytes, Setting]] = {}  # of most registers


class Register:
    """One thing that can be set, and the settings that are known.

    Args:
        longest_wins: of concurrent settings the longer deadline stands, and none is the longest.

    Attributes:
        settings: the last of each origin that no deletion has taken away. Not changed in place.
    """

    def __init__(self, longest_wins: bool = False) -> None:
        self.longest_wins: Final = longest_wins
        self.settings = _NO_SETTINGS

    def add(self, setting: Setting) -> bool:
        """Add a setting. Return whether it stands."""
        origin, number = setting.dot
        before = self.settings.get(origin)
        if before is None or before.dot[1] < number:
            self.put(setting)
        return self.winner() is setting

    def put(self, setting: Setting) -> None:
        """Make this the only known setting of its origin."""
        self.settings = {**self.settings, setting.dot[0]: setting}

    def drop(self, origins: list[bytes]) -> None:
        """Forget the settings of these origins."""
        if origins:
            settings = self.settings
            self.settings = {name: settings[name] for name in settings if name not in origins}

    def drop_seen(self, numbers: Numbers) -> bool:
        """Forget settings that a deletion's maker had seen. Return whether the winner changes."""
        before = self.winner()
        settings = self.settings
        self.drop([origin for origin in settings if covers(numbers, settings[origin].dot)])
        return self.winner() is not before

    def winner(self) -> Setting | None:
        """Return the setting that stands, or None where nothing was set."""
        return self.best(list(self.settings.values()))

    def best(self, settings: list[Setting]) -> Setting | None:
        """Return the one of some settings that would stand."""
        found: Setting | None = None
        for setting in settings:
            if found is None or self._rank(setting) > self._rank(found):
                found = setting
        return found

    def next_version(self) -> int:
        """Return the version of a setting that is made now."""
        return 1 + max((setting.version for setting in self.settings.values()), default=0)

    def _rank(self, setting: Setting) -> tuple[int, int, int, tuple[int, int], int]:
        far = 0
        length = 0
        if self.longest_wins:
            far = 1 if setting.first == NO_DEADLINE else 0
            length = setting.first
        return setting.version, far, length, origin_key(setting.dot[0]), setting.dot[1]

    def copy(self) -> Register:
        """Return an equal copy."""
        twin = Register(self.longest_wins)
        twin.settings = self.settings
        return twin


class Removal:
    """A deletion of the key, or its expiry, by ``kind``: ``DEL`` or ``EXPIRE``.

    A deletion takes away all groups that its maker had not seen to be made after it. An expiry
    takes away the groups that its maker had seen. ``dot`` is the record, ``numbers`` what its maker
    knew.
    """

    def __init__(self, kind: int, dot: Dot, numbers: Numbers) -> None:
        self.kind: Final = kind
        self.dot: Final = dot
        self.numbers: Final = numbers

    def has_seen(self, dot: Dot) -> bool:
        """Return whether its maker knew a record."""
        return covers(self.numbers, dot)


class Top(NamedTuple):
    """An ID set with XSETID, in the record ``dot``: new entries get higher ones."""

    dot: Dot
    entry_id: ID


class Tombstone(NamedTuple):
    """The end of a group by the record ``dot``, whose maker knew ``numbers``."""

    dot: Dot
    numbers: Numbers


class Awaited(NamedTuple):
    """An entry that is to be removed once another one, which says the same, has come.

    The other one is ``winner_lane``, ``winner_id``.
    """

    winner_lane: bytes
    winner_id: ID
    lane: bytes
    entry_id: ID
