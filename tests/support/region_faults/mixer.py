"""A client that does everything a stream can go through; what is there is only compared."""

from __future__ import annotations

from typing import Final

from support.client import Argument, WireError
from support.region_faults.clients import Client
from support.region_faults.history import MIXED, OTHER_MIXED

_GROUPS: Final = ("g", "h")
_WEIGHTS: Final = (
    ("add", 40), ("add_once", 5), ("delete", 8), ("trim", 3), ("remove", 2), ("expire", 2),
    ("persist", 1), ("rename", 1), ("copy", 1), ("create", 5), ("destroy", 2), ("read", 12),
    ("acknowledge", 12), ("set_id", 1), ("set_top", 1), ("configure", 1), ("set_mode", 1),
    ("reference", 4),
)  # fmt: skip


class Mixer(Client):
    """Changes a few keys in every way."""

    def step(self) -> None:
        kinds = [kind for kind, _ in _WEIGHTS]
        kind = self.chance.choices(kinds, [weight for _, weight in _WEIGHTS])[0]
        commands = [self._command(kind) for _ in range(self.chance.choice((1, 1, 4)))]
        replies = self.ask_all(commands)
        refused = [each for each in replies if isinstance(each, WireError)]
        if any(each.text.startswith((b"AA", b"MISCONF", b"LOADING")) for each in refused):
            self.move_anywhere()
        if self.chance.random() < 0.02:
            self.move_anywhere()

    def _command(self, kind: str) -> tuple[Argument, ...]:
        chance = self.chance
        key = chance.choice((MIXED, MIXED, OTHER_MIXED))
        group = chance.choice(_GROUPS)
        value = chance.randrange(1 << 30)
        match kind:
            case "add":
                limit = ("MAXLEN", "~", 100) if chance.random() < 0.1 else ()
                return ("XADD", key, *limit, "*", "f", value)
            case "add_once":
                return ("XADD", key, "IDMP", "p", chance.randrange(50), "*", "f", value)
            case "delete":
                return ("XDEL", key, self._some_id(key))
            case "trim":
                return ("XTRIM", key, "MAXLEN", chance.choice(("=", "~")), chance.randrange(200))
            case "remove":
                return (chance.choice(("DEL", "UNLINK")), key)
            case "expire":
                return ("PEXPIRE", key, chance.choice((50, 300, 1_000_000)))
            case "persist":
                return ("PERSIST", key)
            case "rename":
                return ("RENAME", MIXED, OTHER_MIXED)
            case "copy":
                return ("COPY", MIXED, OTHER_MIXED, "REPLACE")
            case "create":
                start = chance.choice(("0", "$"))
                return ("XGROUP", "CREATE", key, group, start, "MKSTREAM")
            case "destroy":
                return ("XGROUP", "DESTROY", key, group)
            case "read":
                words = ("XREADGROUP", "GROUP", group, "c", "COUNT", 20, "STREAMS", key)
                return (*words, chance.choice((">", ">", "0")))
            case "acknowledge":
                return ("XACK", key, group, self._some_id(key), self._some_id(key))
            case "set_id":
                return ("XGROUP", "SETID", key, group, chance.choice(("0", "$")))
            case "set_top":
                return ("XSETID", key, self._some_id(key))
            case "configure":
                return ("XCFGSET", key, "IDMP-DURATION", chance.choice((10, 100, 1000)))
            case "set_mode":
                return ("XGROUP", "SETMODE", key, group, "MAX-PENDING", chance.randrange(1, 50))
        policy = chance.choice(("KEEPREF", "DELREF", "ACKED"))
        return ("XDELEX", key, policy, "IDS", 1, self._some_id(key))

    def _some_id(self, key: str) -> bytes:
        found = self.ask("XRANGE", key, "-", "+", "COUNT", 20)
        if isinstance(found, list) and found:
            entry_id = self.chance.choice(found)[0]
            assert isinstance(entry_id, bytes)
            return entry_id
        return b"1-1"
