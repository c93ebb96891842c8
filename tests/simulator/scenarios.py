"""The founding document's tables, and more of that kind, as scenarios for regions.

A scenario is text. Each line is a step, and every link is paused before the first one, so that
nothing travels except at ``sync``:

    sync [region ...]       these regions, or all, pull until they have what each other one has
    clock REGION MS         set its time of day; pass MS lets time go by everywhere
    REGION> words           a command, in one of the regions; in ``both`` or ``all`` of them in turn
    REGION:NAME> words      the same, by a client that has a name, because it waits, or watches
    ... => reply            what it answers; ``REGION:NAME => reply`` is what one that waited gets
    quiet REGION> words     a command that leaves no record for other regions
    until REGION> words     a command that is asked again until it is answered like that
    resume                  from here on the links carry by themselves

A reply is a number or text as it is, or

    $a                      whatever it is, to be used later as ``$a``
    ids 1-1 2-1             these entries, or pending ones, in this order; ``ids`` alone is none
    texts a b               these are the last values of the entries
    names g h               these groups or consumers, in any order
    distinct 4              so many entries, none of which has the ID of another
    pending 3               so many pending entries, of XPENDING
    lanes 2                 so many lanes, of XINFO STREAM
    field NAME VALUE        a field of XINFO; ``below VALUE`` and ``from VALUE`` compare IDs, and
                            ``is $a`` binds it
    error TEXT              an error that has this in its text
    nil, waits

What only some runners can do has words of its own, which are described at ``Regions``: ``fsync``,
``power``, ``kill``, ``stop``, ``start``, ``keep``, ``restore``, ``cut``, ``heal``, ``settle``,
``rewrite``, ``fill``, ``full``, ``room``.

The same steps run in the simulator and with processes. Where the document contradicts itself, a
comment at the scenario says which reading is asserted.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Final, NamedTuple


class Refused(NamedTuple):
    """A reply that is an error."""

    text: bytes


class Waiting:
    """There is no reply yet."""


WAITS: Final = Waiting()

NEEDS_PROCESS: Final = "process"  # stopping, power cuts, folders
NEEDS_NETWORK: Final = "network"  # links that are cut


class Scenario(NamedTuple):
    """One of them.

    Attributes:
        name: as the specification has it, such as ``S2b``.
        regions: how many there are.
        mode: of IDs, at the start.
        steps: the text.
        needs: what the runner has to be able to do besides.
    """

    name: str
    title: str
    regions: int
    mode: str
    steps: str
    needs: frozenset[str] = frozenset()


class Regions:
    """Several regions that a scenario is put through; they are numbered from 1."""

    count: int

    @abstractmethod
    def call(self, region: int, client: str, words: list[bytes]) -> object:
        """Run a command as a client of a region; the reply, or ``WAITS``."""

    @abstractmethod
    def reply(self, region: int, client: str) -> object:
        """What a client that waited has been answered, or ``WAITS`` when that does not come."""

    @abstractmethod
    def sync(self, regions: list[int]) -> None:
        """The barrier: these regions pull until they have what each other one had at the call."""

    @abstractmethod
    def set_clock(self, region: int, ms: int) -> None:
        """Set the time of day of a region."""

    @abstractmethod
    def elapse(self, ms: int) -> None:
        """Let time go by in all of them, and what happens by itself happen."""

    def cut_between(self, one: int, other: int) -> None:
        """These two regions do not reach each other."""
        raise NotImplementedError

    @abstractmethod
    def resume(self) -> None:
        """Let the links carry by themselves from now on."""

    def rest(self) -> None:
        """Let processes work for a moment, where they need one."""

    def fsync(self, region: int) -> None:
        """What has been written so far survives a power cut."""
        raise NotImplementedError

    def power(self, region: int) -> None:
        """Cut its power, which takes what was written after the last ``fsync``; start it again."""
        raise NotImplementedError

    def kill(self, region: int) -> None:
        """End it at once, and start it again."""
        raise NotImplementedError

    def stop(self, region: int) -> None:
        """End it in order."""
        raise NotImplementedError

    def start(self, region: int) -> None:
        """Start it again."""
        raise NotImplementedError

    def keep(self, region: int, name: str) -> None:
        """Make a copy of the folder of a region that has been stopped."""
        raise NotImplementedError

    def restore(self, region: int, name: str) -> None:
        """Put a copy in the place of the folder of a region that has been stopped."""
        raise NotImplementedError

    def cut(self) -> None:
        """No region reaches another one, not even to say hello."""
        raise NotImplementedError

    def heal(self) -> None:
        """All of them reach each other; what is paused stays so."""
        raise NotImplementedError

    def settle(self, region: int) -> None:
        """Wait until a region takes writes."""
        raise NotImplementedError

    def rewrite(self, region: int) -> None:
        """Have its files written anew, and wait for that."""
        raise NotImplementedError

    def full(self, region: int) -> None:
        """Nothing more can be written to its disk."""
        raise NotImplementedError

    def room(self, region: int) -> None:
        """Its disk has room again."""
        raise NotImplementedError


class Failed(AssertionError):
    """A step went another way; says which one, and how."""


# The scenarios

S1 = """
clock 1 1589929244828
clock 2 1589929246795
1> XADD messages * text hello => 1589929244828-1
2> XADD messages * text goodbye => 1589929246795-2
1> XRANGE messages - + => ids 1589929244828-1
2> XRANGE messages - + => ids 1589929246795-2
sync
both> XRANGE messages - + => ids 1589929244828-1 1589929246795-2
"""

S1B = """
clock 1 1589929244828
clock 2 1589929244828
1> XADD messages * text hello => 1589929244828-1
2> XADD messages * text goodbye => 1589929244828-2
sync
both> XRANGE messages - + => ids 1589929244828-1 1589929244828-2
both> XREVRANGE messages + - => ids 1589929244828-2 1589929244828-1
"""

# D1: the prose has `x`, the table `messages`: one key. D2: the ID that stays is that of region 2,
# whatever it ends in.
S2 = """
1> XADD messages * text hello => $a
sync
pass 5
1> {DEL}
2> XADD messages * text goodbye => $b
1> {GONE}
2> XRANGE messages - + => ids $a $b
sync
both> XRANGE messages - + => ids $b
both> EXISTS messages => 1
"""
S2_REMOVALS: Final = {
    "S2": ("DEL messages => 1", "EXISTS messages => 0"),
    "S2b": ("XDEL messages $a => 1", "XRANGE messages - + => ids"),
    "S2c": ("XTRIM messages MAXLEN 0 => 1", "XLEN messages => 0"),
    "S2d": ("FLUSHALL => OK", "EXISTS messages => 0"),
    "S2g": ("UNLINK messages => 1", "EXISTS messages => 0"),
}

S2F = """
1> XADD messages * text hello => $a
sync
1> PEXPIRE messages 1 => 1
2> XADD messages * text goodbye => $b
pass 5
1> EXISTS messages => 0
2> XRANGE messages - + => ids $a $b
sync
both> XRANGE messages - + => ids $b
both> EXISTS messages => 1
"""

# Region 3 receives region 1's DEL before region 2's entry, which is older.
S2E = """
1> XADD messages * text hello => $a
sync
pass 5
2> XADD messages * text goodbye => $b
pass 5
1> DEL messages => 1
sync 1 3
3> EXISTS messages => 0
sync
all> XRANGE messages - + => ids $b
all> EXISTS messages => 1
"""

# Region 3 hears of a removal before it has what is removed.
S2I = """
1> XADD x 100 f v => 100-1
1> XADD x 200 f v => 200-1
sync 1 2
2> XDEL x 100-1 => 1
sync 2 3
sync
all> XRANGE x - + => ids 200-1
"""

# A trim says how far it reaches in each lane. What it had not seen stays, though it is older.
S2J = """
2> XADD x 150 f v => 150-2
1> XADD x 100 f v => 100-1
1> XADD x 200 f v => 200-1
1> XTRIM x MAXLEN 0 => 2
sync
both> XRANGE x - + => ids 150-2
"""

# Region 3 hears of a trim before it has what is trimmed, and has nothing but that when it ends.
S2H = """
resume
1> XADD other * f v => $o
until all> EXISTS other => 1
1> DEL other => 1
pass 6000
cut 1 3
1> XADD x 100 f v => 100-1
until 2> XLEN x => 1
2> XTRIM x MAXLEN 0 => 1
pass 1000
3> XLEN x => 0
kill 3
resume
pass 2000
heal
until 3> EXISTS x => 1
pass 3000
all> XRANGE x - + => ids
"""

# D3: the table's IDs, which the strict mode refuses.
S3 = """
1> XADD x 100-1 f v => 100-1
2> XADD x 100-1 f v => 100-1
sync
both> XRANGE x - + => ids 100-1 100-1
both> XREVRANGE x + - => ids 100-1 100-1
both> XLEN x => 2
both> XGROUP CREATE x g 0 => OK
1> XREADGROUP GROUP g c STREAMS x > => ids 100-1 100-1
1> XPENDING x g => pending 1
1> XREADGROUP GROUP g c COUNT 1 STREAMS x 0 => ids 100-1 100-1
1> XCLAIM x g d 0 100-1 => ids 100-1 100-1
1> XACK x g 100-1 => 1
1> XPENDING x g => pending 0
1> XDEL x 100-1 => 2
sync
both> XLEN x => 0
"""

# Equal IDs come in the order of their lanes, in every region.
S3_TIE = """
2> XADD x 100-1 f two => 100-1
1> XADD x 100-1 f one => 100-1
1> XADD x 100-2 f end => 100-2
sync
both> XRANGE x - + => texts one two end
both> XREVRANGE x + - => texts end two one
both> XRANGE x - + COUNT 1 => texts one
"""

S3_RENAME = """
1> XADD x 100-1 f v => 100-1
2> XADD x 100-1 f v => 100-1
sync
both> XLEN x => 2
1> RENAME x y => OK
sync
both> XRANGE y - + => ids 100-1
both> XLEN y => 1
both> EXISTS x => 0
"""

S3A = """
1> XADD x 100-1 f v => error full stream IDs are not allowed in strict ID mode
1> EXISTS x => 0
1> XADD x 100 f v => 100-1
2> XADD x 100 f v => 100-2
sync
both> XRANGE x - + => ids 100-1 100-2
"""

S3B = """
both> XADD x 100 f v => 100-0
sync
both> XLEN x => 2
both> XRANGE x - + => ids 100-0 100-0
"""

S3C = """
1> XADD x 100 f v => 100-1
1> XADD x 100 f v => 100-17
1> XADD x 99 f v => error smaller
1> XADD x 200-* f v => 200-1
1> XADD x 200 f v => 200-17
1> XADD x 200 f v => 200-33
1> MULTI => OK
1> XADD x 300 f v => QUEUED
1> XADD x 300 f v => QUEUED
1> XADD x 300 f v => QUEUED
1> EXEC => values 300-1 300-17 300-33
"""

S4 = """
1> XADD x 110 f v => 110-1
2> XADD x 115 f v => 115-2
1> XADD x 120 f v => 120-1
1> XADD x 130 f v => 130-1
1> XREAD COUNT 2 STREAMS x 0 => ids 110-1 120-1
sync
1> XREAD COUNT 2 STREAMS x 120-1 => ids 130-1
both> XREAD STREAMS x 0 => ids 110-1 115-2 120-1 130-1
"""

# D4: the key is there, because CREATE on a missing one is an error.
S5 = """
1> XADD x 1 f v => 1-1
sync
1> XGROUP CREATE x group1 0 => OK
2> XGROUP CREATE x group2 0 => OK
sync
both> XINFO GROUPS x => names group1 group2
"""

S5A = """
1> XGROUP CREATE x group1 0 MKSTREAM => OK
2> XGROUP CREATE x group2 0 MKSTREAM => OK
sync
both> XINFO GROUPS x => names group1 group2
"""

S5B = """
1> XADD x 1 f v => 1-1
sync
both> XGROUP CREATE x g 0 => OK
sync
both> XINFO GROUPS x => names g
1> XREADGROUP GROUP g alice STREAMS x > => ids 1-1
1> XACK x g 1-1 => 1
sync
2> XREADGROUP GROUP g bob STREAMS x > => nil
1> XADD x 2 f v => 2-1
sync
2> XREADGROUP GROUP g bob STREAMS x > => ids 2-1
2> XACK x g 2-1 => 1
sync
1> XREADGROUP GROUP g alice STREAMS x > => nil
"""

# D5: EXISTS is 0 because nobody has added an entry. DEL ends every group of the key.
S6 = """
1> XGROUP CREATE x group1 0 MKSTREAM => OK
sync
1> DEL x => 1
2> XGROUP CREATE x group2 0 => OK
sync
both> EXISTS x => 0
both> XINFO GROUPS x => error no such key
"""

S6B = """
1> XGROUP CREATE x group1 0 MKSTREAM => OK
sync
1> DEL x => 1
2> XGROUP CREATE x group2 0 => OK
2> XADD x 5 f v => 5-2
sync
both> EXISTS x => 1
both> XLEN x => 1
both> XINFO GROUPS x => names
"""

S6C = (
    S6
    + """
2> XGROUP CREATE x group2 0 MKSTREAM => OK
sync
both> XINFO GROUPS x => names group2
"""
)

# D6: the group is gone everywhere, and EXISTS is the same everywhere (rule E).
S7 = """
1> XGROUP CREATE x group1 0 MKSTREAM => OK
sync 1 2
3> XINFO GROUPS x => error no such key
2> XGROUP DESTROY x group1 => 1
3> XGROUP CREATE x group1 0 MKSTREAM => OK
sync
all> XINFO GROUPS x => error no such key
all> EXISTS x => 0
"""

S7B = """
1> XADD x 1 f v => 1-1
sync
1> XGROUP CREATE x group1 0 => OK
sync 1 2
3> XINFO GROUPS x => names
2> XGROUP DESTROY x group1 => 1
3> XGROUP CREATE x group1 0 => OK
sync
all> XINFO GROUPS x => names
all> EXISTS x => 1
"""

S7C = """
1> XADD x 1 f v => 1-1
sync
1> XGROUP CREATE x group1 0 => OK
sync 1 2
2> XGROUP DESTROY x group1 => 1
3> XGROUP CREATE x group1 $ => OK
3:reader> XREADGROUP GROUP group1 carol BLOCK 0 STREAMS x > => waits
sync
3:reader => error NOGROUP
"""

S8 = """
1> XADD messages 110 text hello => 110-1
1> XGROUP CREATE messages group1 0 => OK
1> XREADGROUP GROUP group1 Alice STREAMS messages > => ids 110-1
sync
both> XRANGE messages - + => ids 110-1
both> XINFO GROUPS messages => names group1
1> XINFO CONSUMERS messages group1 => names Alice
2> XINFO CONSUMERS messages group1 => names
1> XPENDING messages group1 - + 1 => ids 110-1
2> XPENDING messages group1 - + 1 => ids
"""

S8B = (
    S8
    + """
2> XREADGROUP GROUP group1 Bob STREAMS messages > => ids 110-1
1> XPENDING messages group1 - + 9 Alice => ids 110-1
2> XPENDING messages group1 - + 9 Bob => ids 110-1
"""
)

# D7: whole IDs in semi-strict mode, milliseconds in strict. D8, D9: an acknowledgement travels when
# it extends what is acknowledged without a gap. Nothing within is read again, beyond it perhaps.
S9_READ = """
1> XADD x {110} f v => {110-}
1> XADD x {120} f v => {120-}
1> XADD x {130} f v => {130-}
1> XGROUP CREATE x group1 0 => OK
1> XREADGROUP GROUP group1 Alice STREAMS x > => ids {110-} {120-} {130-}
"""
S9_TWO = (
    S9_READ
    + """
1> XACK x group1 {110-} => 1
sync
1> AA COUNT ACK => 1
1> XACK x group1 {130-} => 1
sync
1> AA COUNT ACK => 1
"""
)
S9 = (
    S9_TWO
    + """
1> XACK x group1 {120-} => 1
sync
1> AA COUNT ACK => 2
2> XREADGROUP GROUP group1 Bob STREAMS x > => nil
"""
)
S9B = (
    S9_TWO
    + """
2> XREADGROUP GROUP group1 Bob STREAMS x > => ids {120-} {130-}
"""
)
S9C = (
    S9B
    + """
2> XACK x group1 {120-} {130-} => 2
sync
1> XPENDING x group1 => pending 0
"""
)
S9D = (
    S9_READ
    + """
1> XDEL x {110-} => 1
1> XACK x group1 {120-} => 1
sync
2> XREADGROUP GROUP group1 Bob STREAMS x > => ids {130-}
"""
)
S9I = (
    S9_READ
    + """
1> XDEL x {120-} => 1
1> XACK x group1 {110-} {130-} => 2
sync
2> XREADGROUP GROUP group1 Bob STREAMS x > => nil
"""
)
S9E = (
    S9
    + """
2> XGROUP SETID x group1 0 => OK
2> XREADGROUP GROUP group1 Bob STREAMS x > => nil
"""
)

# What is acknowledged begins where reading began: region 1's group began behind 120.
S9G = """
1> XADD x {110} f v => {110-}
1> XADD x {120} f v => {120-}
sync
1> XGROUP CREATE x group1 $ => OK
2> XGROUP CREATE x group1 0 => OK
1> XADD x {130} f v => {130-}
1> XREADGROUP GROUP group1 Alice STREAMS x > => ids {130-}
1> XACK x group1 {130-} => 1
sync
2> XREADGROUP GROUP group1 Bob STREAMS x > => ids {110-} {120-}
"""

# Nor does it hold for what XGROUP SETID has passed over.
S9H = """
1> XADD x {110} f v => {110-}
1> XADD x {120} f v => {120-}
1> XADD x {130} f v => {130-}
1> XGROUP CREATE x group1 0 => OK
1> XREADGROUP GROUP group1 Alice COUNT 1 STREAMS x > => ids {110-}
1> XACK x group1 {110-} => 1
1> XGROUP SETID x group1 {120-} => OK
1> XREADGROUP GROUP group1 Alice STREAMS x > => ids {130-}
1> XACK x group1 {130-} => 1
sync
2> XREADGROUP GROUP group1 Bob STREAMS x > => ids {120-}
"""

# The region ends before others get to know what was acknowledged.
S9F = (
    """
1> CONFIG SET aa-ack-interval-ms 60000 => OK
"""
    + S9_READ
    + """
1> XACK x group1 {110-} => 1
kill 1
settle 1
1> XPENDING x group1 => pending 2
pass 100
sync
2> XREADGROUP GROUP group1 Bob STREAMS x > => ids {120-} {130-}
"""
)

# A barrier is for what was acknowledged a moment ago, too, and so is a token.
S9L = (
    """
1> CONFIG SET aa-ack-interval-ms 60000 => OK
"""
    + S9_READ
    + """
1> XACK x group1 {110-} => 1
sync 2
2> XREADGROUP GROUP group1 Bob COUNT 1 STREAMS x > => ids {120-}
1> XACK x group1 {120-} => 1
1> AA TOKEN => $told
2:waiter> AA WAIT $told 0 => waits
sync 2
2:waiter => 1
2> XPENDING x group1 => pending 0
"""
)

# What region 2 acknowledges, or deletes, closes a gap in what region 1 has acknowledged.
S9J = """
1> XGROUP CREATE x g 0 MKSTREAM => OK
1> XADD x 110 f v => 110-1
1> XADD x 120 f v => 120-1
1> XADD x 130 f v => 130-1
2> XADD x 115 f v => 115-2
sync
1> XREADGROUP GROUP g Alice STREAMS x > => ids 110-1 115-2 120-1 130-1
2> XREADGROUP GROUP g Bob COUNT 1 STREAMS x > => ids 110-1
1> XACK x g 115-2 130-1 => 2
2> XACK x g 110-1 => 1
sync
until 1> AA COUNT ACK => 1
sync
1> XPENDING x g => pending 1
2> XDEL x 120-1 => 1
sync
until 1> AA COUNT ACK => 2
sync
2> XREADGROUP GROUP g Bob STREAMS x > => nil
"""

# A group moves to a region that has acknowledged beyond a gap: nothing of that comes back, there or
# anywhere else.
S9K = """
1> XADD x 110 f v => 110-1
1> XADD x 120 f v => 120-1
1> XADD x 130 f v => 130-1
1> XGROUP CREATE x g 0 => OK
sync
1> XREADGROUP GROUP g Alice COUNT 2 STREAMS x > => ids 110-1 120-1
2> XREADGROUP GROUP g Bob STREAMS x > => ids 110-1 120-1 130-1
2> XACK x g 120-1 130-1 => 2
MOVE
sync
sync
2> XPENDING x g - + 9 => ids 110-1
2> XREADGROUP GROUP g Bob STREAMS x > => nil
2> AA MOVE x g * => OK
sync
3> XREADGROUP GROUP g Carol STREAMS x > => ids 110-1
"""
S9K_MOVED = S9K.replace("MOVE\n", "1> AA MOVE x g 2 => OK\n")
S9K_FORCED = S9K.replace("MOVE\n", "2> AA MOVE x g 2 FORCE => OK\n")

S10 = """
1> XGROUP CREATE x g 0 MKSTREAM => OK
sync
1> XADD x 110 f v => 110-1
1> XADD x 120 f v => 120-1
2> XADD x 115 f v => 115-2
1> XREADGROUP GROUP g c COUNT 2 STREAMS x > => ids 110-1 120-1
sync
1> XREADGROUP GROUP g c COUNT 2 STREAMS x > => ids 115-2
1> XREADGROUP GROUP g c STREAMS x > => nil
2> XREADGROUP GROUP g c STREAMS x > => ids 110-1 115-2 120-1
"""

# A group that begins at `$` gets what comes later, even with a low ID.
S10B = """
1> XADD x 120 f v => 120-1
2> XADD x 115 f v => 115-2
1> XGROUP CREATE x g $ => OK
sync
1> XREADGROUP GROUP g c STREAMS x > => ids 115-2
2> XREADGROUP GROUP g c STREAMS x > => ids 115-2
"""

# D10: the history is what this consumer has pending, and nobody else's.
S11 = """
1> XGROUP CREATE x g 0 MKSTREAM => OK
sync
1> XADD x 110 f v => 110-1
1> XADD x 120 f v => 120-1
2> XADD x 115 f v => 115-2
1> XREADGROUP GROUP g Alice COUNT 1 STREAMS x > => ids 110-1
1> XREADGROUP GROUP g Bob COUNT 1 STREAMS x > => ids 120-1
sync
1> XREADGROUP GROUP g Alice COUNT 1 STREAMS x > => ids 115-2
1> XREADGROUP GROUP g Alice STREAMS x 0 => ids 110-1 115-2
1> XREADGROUP GROUP g Bob STREAMS x 0 => ids 120-1
1> XPENDING x g - + 9 => ids 110-1 115-2 120-1
"""

# D11: XGROUP SETID does not travel.
S12 = """
1> XADD x 110 f v => 110-1
1> XADD x 120 f v => 120-1
1> XGROUP CREATE x g 0 => OK
sync
1> XREADGROUP GROUP g Alice COUNT 1 STREAMS x > => ids 110-1
quiet 1> XGROUP CREATECONSUMER x g Bob => 1
quiet 1> XCLAIM x g Bob 0 110-1 JUSTID => values 110-1
quiet 1> XAUTOCLAIM x g Alice 0 0 JUSTID => claimed 110-1
quiet 1> XGROUP SETID x g 0 => OK
quiet 1> XNACK x g FAIL IDS 1 110-1 => 1
quiet 1> XGROUP DELCONSUMER x g Bob => 0
quiet 1> XGROUP SETID x g $ => OK
sync
2> XINFO CONSUMERS x g => names
2> XPENDING x g => pending 0
2> XREADGROUP GROUP g Carol STREAMS x > => ids 110-1 120-1
1> XGROUP SETMODE x g MAX-PENDING 7 => OK
sync
2> XINFO GROUPS x => field max-pending 7
"""

# What goes with its consumer was read here and not acknowledged. So it is read where readers go.
S12B = """
1> XGROUP CREATE x g 0 MKSTREAM => OK
1> XADD x 110 f v => 110-1
1> XADD x 120 f v => 120-1
2> XADD x 115 f v => 115-2
2> XADD x 125 f v => 125-2
sync
1> XREADGROUP GROUP g Alice COUNT 2 STREAMS x > => ids 110-1 115-2
1> XREADGROUP GROUP g Bob STREAMS x > => ids 120-1 125-2
1> XACK x g 110-1 => 1
1> XACK x g 120-1 => 1
1> XGROUP DELCONSUMER x g Alice => 1
kill 1
1> XACK x g 125-2 => 1
pass 100
sync
1> XREADGROUP GROUP g Bob STREAMS x > => nil
2> XREADGROUP GROUP g Carol STREAMS x > => ids 115-2
"""

# What is pending of entries that were deleted one by one holds a group back until a trim drops it.
S12B = """
1> XADD x 1 f v => 1-1
1> XADD x 2 f v => 2-1
1> XADD x 3 f v => 3-1
1> XADD x 4 f v => 4-1
1> XGROUP CREATE x g 0 => OK
1> XGROUP SETMODE x g MAX-PENDING 2 => OK
sync
both> XREADGROUP GROUP g c COUNT 2 STREAMS x > => ids 1-1 2-1
1> XDEL x 1-1 2-1 => 2
sync
both> XREADGROUP GROUP g c STREAMS x > => nil
1> XTRIM x MAXLEN 1 DELREF => 1
sync
both> XREADGROUP GROUP g c STREAMS x > => ids 4-1
both> XPENDING x g => pending 1
"""

S13 = """
1> XADD x 100 f v => 100-1
sync
2> XSETID x 50-0 => error smaller
2> XSETID x 200-0 => OK
2> XADD x 150 f v => error smaller
sync
1> XADD x 150 f v => error smaller
1> XADD x 200 f v => 200-1
"""

S14 = """
1> XADD x 100 f v => 100-1
1> XADD x 110 f v => 110-1
1> XGROUP CREATE x g 0 => OK
1> XREADGROUP GROUP g c COUNT 1 STREAMS x > => ids 100-1
sync
1> RENAME x y => OK
2> XADD x 150 f v => 150-2
sync
both> XRANGE y - + => ids 100-1 110-1
both> XINFO GROUPS y => names
both> XRANGE x - + => ids 150-2
both> XINFO GROUPS x => names
"""

# Region 3's DEL reaches up to 200 of the first lane. 50-1 is of the second.
S15 = """
1> XADD x 100 f v => 100-1
1> XADD x 200 f v => 200-1
sync
1> DEL x => 1
1> XADD x 50 f v => 50-1
3> DEL x => 1
sync
all> XRANGE x - + => ids 50-1
"""

# What region 1 has promised is what `*` begins with, because its clock is behind. Region 2 hears of
# its new entries before it hears of the deletion. (R5)
S15B = """
clock 1 1800000000000
clock 2 1800000010000
1> XADD y * f v => $y
1> XINFO STREAM y => field length 1
clock 1 1799990000000
1> XADD x * f v => $a
sync
2> XADD x * f v => $b
sync
1> XADD x * f v => $c
cut 2 3
sync 1 2
sync 1 3
3> DEL x => 1
sync 1 3
1> XADD x * f v => $d
1> XADD x * f v => $e
resume
until 2> XLEN x => 5
2> XRANGE x - + => distinct 5
heal
until all> XRANGE x - + => ids $d $e
"""

S16 = """
1> XADD x * f v => $a
1> XGROUP CREATE x g 0 => OK
1> PEXPIRE x 1000 => 1
sync
pass 15000
2> EXISTS x => 0
1> EXISTS x => 0
1> XADD x * f v => $b
1> XGROUP CREATE x g 0 => OK
sync
both> XRANGE x - + => ids $b
both> XINFO GROUPS x => names g
both> XREADGROUP GROUP g c STREAMS x > => ids $b
"""

# A deadline that a deletion had not seen holds for the stream that is made then, in all regions.
S16B = """
clock 1 1800000000000
clock 2 1800000000000
1> XADD x * f v => $a
sync
1> DEL x => 1
2> PEXPIREAT x 1800000100000 => 1
sync
both> EXISTS x => 0
1> XADD x * f v => $b
sync
both> PEXPIRETIME x => 1800000100000
"""

# Region 1 has set the deadline, and puts it off while its link lags. Region 2 only hides the key.
S16C = """
clock 1 1800000000000
clock 2 1800000000000
1> XADD x * f v => $a
1> XGROUP CREATE x g 0 => OK
1> PEXPIRE x 1000 => 1
sync
1> PERSIST x => 1
pass 3000
2> EXISTS x => 0
2> XRANGE x - + => ids
2> PEXPIRE x 60000 => 0
1> XRANGE x - + => ids $a
sync
both> XRANGE x - + => ids $a
both> PTTL x => -1
both> XREADGROUP GROUP g c STREAMS x > => ids $a
both> AA COUNT EXPIRE => 0
"""

# Who makes something new of that name does not wait: what is hidden goes first.
S16D = """
clock 1 1800000000000
clock 2 1800000000000
1> XADD x * f v => $a
1> PEXPIRE x 1000 => 1
sync
1> PERSIST x => 1
pass 3000
2> XADD x * f v => $b
2> XRANGE x - + => ids $b
2> AA COUNT EXPIRE => 1
sync
both> XRANGE x - + => ids $b
both> PTTL x => -1
"""

# A deadline whose region is away: the others remove the key ten seconds later.
S16E = """
clock 1 1800000000000
clock 2 1800000000000
1> XADD x * f v => $a
1> PEXPIRE x 1000 => 1
sync
stop 1
pass 3000
2> EXISTS x => 0
2> AA COUNT EXPIRE => 0
pass 9000
until 2> AA COUNT EXPIRE => 1
2> EXISTS x => 0
start 1
settle 1
sync
both> EXISTS x => 0
1> XADD x * f v => $b
sync
both> XRANGE x - + => ids $b
"""

# What is set beside a deletion is forgotten once all regions know of both.
S16F = """
clock 1 1700000000000
clock 2 1700000000000
1> XADD x 100 f v => 100-1
1> XGROUP CREATE x g 0 => OK
sync
1> DEL x => 1
2> PEXPIREAT x 1800000100000 => 1
2> XSETID x 200-0 => OK
2> XCFGSET x IDMP-DURATION 50 => OK
2> XGROUP SETMODE x g MAX-PENDING 5 => OK
sync
both> EXISTS x => 0
1> AA COUNT EXPIRE => 0
resume
until both> AA STREAM x => nil
2> AA COUNT EXPIRE => 1
1> AA COUNT EXPIRE => 0
1> XADD x 150 f v => 150-1
sync
both> XRANGE x - + => ids 150-1
both> PEXPIRETIME x => -1
"""

S17 = """
clock 1 1700000001000
clock 2 1700000002000
1> XADD x IDMP p 1 * f v => 1700000001000-1
2> XADD x IDMP p 1 * f v => 1700000002000-2
sync
sync
both> XRANGE x - + => ids 1700000001000-1
both> XADD x IDMP p 1 * f v => 1700000001000-1
both> XLEN x => 1
"""

S17B = """
1> XADD x IDMP p 1 * f v => $a
sync
both> XADD x IDMP p 1 * f v => $a
2> XADD x IDMP q 1 * f v => $b
sync
both> XRANGE x - + => ids $a $b
"""

# Region 3 knows of the removal before it knows of the entry that wins: the other one stays so far.
S17C = """
clock 1 1800000001000
clock 2 1800000002000
1> XADD x IDMP p 1 * f v => 1800000001000-1
2> XADD x IDMP p 1 * f v => 1800000002000-2
cut 1 3
resume
until 2> XRANGE x - + => ids 1800000001000-1
pass 500
3> XRANGE x - + => ids 1800000002000-2
heal
until all> XRANGE x - + => ids 1800000001000-1
"""

# The message that region 3 has deleted is not the one that region 2 stands for, who hears of both.
S17D = """
clock 1 1800000001000
clock 2 1800000002000
1> XADD x IDMP p 1 * f v => 1800000001000-1
sync 1 3
3> DEL x => 1
2> XADD x IDMP p 1 * f v => $b
cut 1 2
sync 1 3
sync 2 3
2> XRANGE x - + => ids $b
heal
sync
sync
all> XRANGE x - + => ids $b
all> XADD x IDMP p 1 * f v => $b
"""

S18 = """
1> XADD x 100 f v => 100-1
fsync 1
1> XADD x 200 f v => 200-1
1> XADD x 300 f v => 300-1
sync 2
2> XRANGE x - + => ids 100-1 200-1 300-1
power 1
settle 1
1> XADD x * f v => $d
sync
both> XRANGE x - + => distinct 4
"""

# What it adds before the tail is back has other IDs, even in the same milliseconds.
S18B = """
1> XADD x 100 f v => 100-1
fsync 1
1> XADD x 200 f v => 200-1
sync 2
2> XRANGE x - + => ids 100-1 200-1
power 1
1> XADD x 200 f v => $c
1> XADD x 200 f v => $d
sync
both> XRANGE x - + => distinct 4
"""

# What could not be written was never sent: nobody knows it when it is lost.
S18C = """
1> XADD x 100 f v => 100-1
sync
resume
full 1
1> XADD x 200 f v => $_
pass 1000
2> XRANGE x - + => ids 100-1
room 1
until 2> XLEN x => 2
"""

S19 = """
1> XADD x 100 f v => 100-1
stop 1
keep 1 old
start 1
settle 1
1> XADD x 200 f v => 200-1
sync
2> XADD x 300 f v => 300-2
stop 1
restore 1 old
cut
start 1
1> XADD x 400 f v => error AASTART
1> XRANGE x - + => ids 100-1
heal
settle 1
1> XADD x 500 f v => $e
sync
both> XRANGE x - + => ids 100-1 200-1 300-2 $e
"""

# What was deleted since, and forgotten, does not come back with an older folder.
S19B = """
1> XADD x 100 f v => 100-1
1> XGROUP CREATE x g 0 => OK
sync
stop 1
keep 1 old
start 1
settle 1
1> DEL x => 1
resume
pass 8000
fill 2
stop 1
restore 1 old
start 1
settle 1
resume
until both> XLEN other => 2000
pass 3000
both> EXISTS x => 0
1> XADD x 50 f v => $e
until both> XRANGE x - + => ids $e
both> XINFO GROUPS x => names
"""

# Who is told that the region is level can write there, though the links are paused.
S19E = """
1> XADD x 100 f v => 100-1
sync
stop 1
keep 1 old
restore 1 old
cut 1 2
start 1
1> AA PAUSE ALL => OK
heal
pass 3000
1> XADD x 200 f v => error AASTART
sync 1
1> XADD x 300 f v => $late
sync
both> XRANGE x - + => ids 100-1 $late
"""

# A copy replaces the older state. What the log has of its own, and nobody else, is not lost.
S19C = """
1> XADD x 100 f v => 100-1
sync
cut
1> XADD x 200 f v => 200-1
stop 1
keep 1 old
restore 1 old
fill 2
start 1
heal
settle 1
resume
until both> XLEN other => 2000
until both> XRANGE x - + => ids 100-1 200-1
"""

# A copy replaces what has come of region 2 since the older state. The file that has it is kept,
# because region 3 has not said that it knows it.
S19D = """
1> XADD x 100 f v => 100-1
sync
stop 1
keep 1 old
restore 1 old
cut
2> XADD x 200 f v => 200-2
fill 3
start 1
heal
settle 1
1> XADD x 300 f v => $late
resume
until all> XLEN other => 2000
until all> XRANGE x - + => ids 100-1 200-2 $late
"""

# A copy does not bring back what was deleted where it comes from, nor here.
S20B = """
1> XADD x 100 f v => 100-1
1> XADD x 200 f v => 200-1
sync
cut
1> XDEL x 100-1 => 1
2> XDEL x 200-1 => 1
2> XADD x 300 f v => 300-2
fill 1
fill 2
heal
sync
both> XRANGE x - + => ids 300-2
"""

S20 = """
1> XADD x 100 f v => 100-1
1> XGROUP CREATE x g 0 => OK
1> XREADGROUP GROUP g c STREAMS x > => ids 100-1
1> XACK x g 100-1 => 1
sync
cut
1> XADD x 200 f v => 200-1
2> XADD x 300 f v => 300-2
fill 1
fill 2
1> XADD x 400 f v => 400-1
2> XADD x 500 f v => 500-2
heal
sync
both> XRANGE x - + => ids 100-1 200-1 300-2 400-1 500-2
both> XLEN other => 4000
1> XREADGROUP GROUP g c STREAMS x > => ids 200-1 300-2 400-1 500-2
2> XREADGROUP GROUP g c STREAMS x > => ids 200-1 300-2 400-1 500-2
"""

# While a copy is joined key by key, nobody sees half of a transaction: who waits for two streams is
# given entries of both.
S20C = """
1> XADD a 100 f v => 100-1
1> XADD b 100 f v => 100-1
sync
1:reader> XREAD BLOCK 0 STREAMS a b $ $ => waits
cut
2> MULTI => OK
2> XADD a 300 f v => QUEUED
2> XADD b 300 f v => QUEUED
2> EXEC => ids 300-2 300-2
fill 1
fill 2
heal
sync
1:reader => ids a b
both> XLEN other => 4000
"""

S21 = """
resume
1> XADD x * f v => $first
until both> XINFO STREAM x => field stable-id from $first
cut
pass 3000
1> XADD x * f v => $a
pass 3
2> XADD x * f v => $b
1> XINFO STREAM x => field stable-id below $a
2> XINFO STREAM x => field stable-id below $a
heal
until both> XINFO STREAM x => field stable-id from $a
both> XREAD STREAMS x $first => ids $a $b
"""

# A promise holds after an end, whatever the clock says then.
S21B = """
clock 1 1800000000000
clock 2 1800000000000
resume
2> XADD y * f v => $y
until both> XINFO STREAM y => field stable-id from $y
pass 5500
until 2> XINFO STREAM y => field stable-id from 1800000004000-0
2> XINFO STREAM y => field stable-id is $told
kill 1
clock 1 1799990000000
settle 1
1> XADD y * f v => $late
until 2> XLEN y => 2
2> XREAD STREAMS y $told => ids $late
"""

# A region whose clock is a minute ahead holds nothing back: the other one promises as much.
S21C = """
clock 1 1800000060000
clock 2 1800000000000
resume
1> XADD x * f v => $a
until both> XINFO STREAM x => field stable-id from $a
until both> XREAD STABLE STREAMS x 0 => ids $a
2> XADD x * f v => $b
until both> XREAD STABLE STREAMS x $a => ids $b
"""

S22 = """
1> XADD x 100 f v => 100-1
1> XGROUP CREATE x g $ => OK
sync
2:watcher> WATCH x => OK
2:ears> SUBSCRIBE __keyevent@0__:xadd => $_
2:reader> XREAD BLOCK 0 STREAMS x $ => waits
2:worker> XREADGROUP GROUP g c BLOCK 0 STREAMS x > => waits
1> XADD x 200 f v => 200-1
sync
2:reader => ids 200-1
2:worker => ids 200-1
2:watcher> MULTI => OK
2:watcher> XLEN x => QUEUED
2:watcher> EXEC => nil
2:ears => values message __keyevent@0__:xadd x
"""

# Each restart without the others begins an epoch, and so a lane. Those that are empty go once all
# know of them, and take nothing along.
S23 = """
1> XADD x IDMP p 1 * f v => $a
1> XGROUP CREATE x g 0 => OK
sync
cut
stop 1
start 1
settle 1
1> XADD x * f v => $b
stop 1
start 1
settle 1
1> XADD x * f v => $c
stop 1
start 1
settle 1
1> XADD x * f v => $d
1> XREADGROUP GROUP g c COUNT 2 STREAMS x > => ids $a $b
1> XTRIM x MAXLEN 2 => 2
1> XINFO STREAM x => lanes 4
heal
settle 1
resume
until both> XINFO STREAM x => lanes 2
1> AA COUNT EXPIRE => 1
2> AA COUNT EXPIRE => 0
both> XINFO STREAM x => field entries-added 4
both> XADD x IDMP p 1 * f v => $a
both> XRANGE x - + => ids $c $d
both> XREADGROUP GROUP g c STREAMS x > => ids $c $d
1> XTRIM x MAXLEN 0 => 2
until both> XINFO STREAM x => lanes 1
2> XADD x * f v => $e
2> XDEL x $e => 1
sync
cut
stop 1
start 1
settle 1
heal
settle 1
resume
pass 5000
both> XINFO STREAM x => lanes 2
both> EXISTS x => 1
both> XINFO STREAM x => field last-generated-id $e
both> XINFO GROUPS x => names g
1> DEL x => 1
until both> AA STREAM x => nil
both> EXISTS x => 0
"""


def _scenarios() -> list[Scenario]:
    process = frozenset((NEEDS_PROCESS,))
    both = frozenset((NEEDS_PROCESS, NEEDS_NETWORK))
    network = frozenset((NEEDS_NETWORK,))
    found = [
        Scenario("S1", "IDs are unique, and the same everywhere after a sync", 2, "strict", S1),
        Scenario("S1b", "the same clock in both regions", 2, "strict", S1B),
    ]
    for name, (removal, gone) in S2_REMOVALS.items():
        steps = S2.replace("{DEL}", removal).replace("{GONE}", gone)
        found.append(Scenario(name, "what was not seen is not removed", 2, "strict", steps))
    found += [
        Scenario("S2h", "a trim that comes early is remembered", 3, "strict", S2H, both),
        Scenario("S2i", "a removal that comes early is remembered", 3, "strict", S2I),
        Scenario("S2j", "a trim does not reach what it had not seen", 2, "strict", S2J),
        Scenario("S2e", "a removal comes before an older entry", 3, "strict", S2E),
        Scenario("S2f", "expiry removes what was seen", 2, "strict", S2F),
        Scenario("S3", "duplicates of callers' IDs", 2, "semi-strict", S3),
        Scenario("S3-liberal", "duplicates of callers' IDs", 2, "liberal", S3),
        Scenario("S3-tie", "the order of equal IDs", 2, "semi-strict", S3_TIE),
        Scenario("S3-rename", "RENAME merges duplicates", 2, "semi-strict", S3_RENAME),
        Scenario("S3-rename-liberal", "RENAME merges duplicates", 2, "liberal", S3_RENAME),
        Scenario("S3a", "strict takes no whole ID", 2, "strict", S3A),
        Scenario("S3b", "liberal gives the sequence 0", 2, "liberal", S3B),
        Scenario("S3c", "the sequences that one region gives", 1, "strict", S3C),
        Scenario("S4", "XREAD may skip", 2, "strict", S4),
        Scenario("S5", "two groups made at the same time", 2, "strict", S5),
        Scenario("S5a", "two groups made with the stream", 2, "strict", S5A),
        Scenario("S5b", "two groups of one name are one", 2, "strict", S5B),
        Scenario("S6", "DEL beats a group made meanwhile", 2, "strict", S6),
        Scenario("S6b", "DEL beats a group, not an entry", 2, "strict", S6B),
        Scenario("S6c", "the group is made again", 2, "strict", S6C),
        Scenario("S7", "DESTROY beats a group made meanwhile", 3, "strict", S7),
        Scenario("S7b", "the same, of a stream that has an entry", 3, "strict", S7B),
        Scenario("S7c", "who waits for a group that is destroyed", 3, "strict", S7C),
        Scenario("S8", "consumers are local", 2, "strict", S8),
        Scenario("S8b", "both regions may read an entry", 2, "strict", S8B),
    ]
    for name, steps in (
        ("S9", S9),
        ("S9b", S9B),
        ("S9c", S9C),
        ("S9d", S9D),
        ("S9e", S9E),
        ("S9f", S9F),
        ("S9g", S9G),
        ("S9h", S9H),
        ("S9i", S9I),
        ("S9l", S9L),
    ):
        for mode, given in (("semi-strict", "-0"), ("strict", "")):
            text = steps
            for ms in ("110", "120", "130"):
                text = text.replace(f"{{{ms}}}", ms + given)
                text = text.replace(f"{{{ms}-}}", ms + (given or "-1"))
            title = "acknowledgements travel as prefixes"
            needs = process if "kill" in text else frozenset()
            found.append(Scenario(f"{name}-{mode}", title, 2, mode, text, needs))
    found += [
        Scenario("S9j", "another region closes a gap", 2, "strict", S9J),
        Scenario("S9k", "a move to whom has acknowledged", 3, "strict", S9K_MOVED),
        Scenario("S9k-forced", "a move that its target makes", 3, "strict", S9K_FORCED),
        Scenario("S10", "XREADGROUP never skips", 2, "strict", S10),
        Scenario("S10b", "a group from `$` gets what comes late", 2, "strict", S10B),
        Scenario("S11", "the history of a consumer", 2, "strict", S11),
        Scenario("S12", "what does not travel, and what does", 2, "strict", S12),
        Scenario(
            "S12b",
            "what goes with its consumer is not acknowledged",
            2,
            "strict",
            S12B,
            frozenset((NEEDS_PROCESS,)),
        ),
        Scenario("S12b", "a trim frees groups that are held back", 2, "strict", S12B),
        Scenario("S13", "XSETID", 2, "strict", S13),
        Scenario("S14", "RENAME drops groups, and what it had not seen stays", 2, "strict", S14),
        Scenario("S15", "DEL, then a lower ID", 3, "strict", S15),
        Scenario("S15b", "DEL, then a clock that was set back", 3, "strict", S15B, network),
        Scenario("S16", "expiry does not destroy groups made since", 2, "strict", S16),
        Scenario("S16b", "a deadline beside a deletion", 2, "strict", S16B),
        Scenario("S16c", "a deadline is put off at the last moment", 2, "strict", S16C),
        Scenario("S16d", "a stream under a name that is hidden", 2, "strict", S16D),
        Scenario("S16e", "whoever set a deadline is away", 2, "strict", S16E, process),
        Scenario("S16f", "what is set beside a deletion goes", 2, "strict", S16F),
        Scenario("S17", "idempotent production in two regions", 2, "strict", S17),
        Scenario("S17b", "a retry in another region", 2, "strict", S17B),
        Scenario("S17c", "a removal comes before what wins", 3, "strict", S17C, network),
        Scenario("S17d", "a deletion comes before what would win", 3, "strict", S17D, network),
        Scenario("S18", "a power cut, and its tail comes back", 2, "strict", S18, process),
        Scenario("S18b", "IDs after a power cut are others", 2, "strict", S18B, process),
        Scenario("S18c", "what is not written is not sent", 2, "strict", S18C, network),
        Scenario("S19", "an older copy of the folder", 2, "strict", S19, both),
        Scenario("S19b", "an older copy of what was deleted since", 2, "strict", S19B, both),
        Scenario("S19c", "an older copy of the folder, and a copy", 2, "strict", S19C, both),
        Scenario("S19d", "an older copy, a part of the log, a copy", 3, "strict", S19D, both),
        Scenario("S19e", "an older copy, and a barrier", 2, "strict", S19E, both),
        Scenario("S20b", "copies, and what was deleted", 2, "strict", S20B, both),
        Scenario("S20c", "a copy is seen as a whole", 2, "strict", S20C, both),
        Scenario("S20", "too late for the log", 2, "strict", S20, both),
        Scenario("S21", "stable IDs", 2, "strict", S21, frozenset((NEEDS_NETWORK,))),
        Scenario("S21b", "stable IDs, and a clock that was set back", 2, "strict", S21B, process),
        Scenario("S21c", "stable IDs, and a clock that is ahead", 2, "strict", S21C, process),
        Scenario("S22", "who waits or watches is woken", 2, "strict", S22),
        Scenario("S23", "lanes of epochs that are over go", 2, "strict", S23, both),
    ]
    return found


SCENARIOS: Final = {scenario.name: scenario for scenario in _scenarios()}


# How they run

_STEP: Final = re.compile(
    r"(?P<how>quiet |until )?(?P<where>both|all|\d+)(:(?P<client>\w+))?(?P<asks>>)?(?P<rest> .*)"
)
_BARE: Final = frozenset(
    "fsync power kill stop start cut heal settle rewrite resume full room".split()
)
DEFAULT_CLIENT: Final = "client"
_TRIES: Final = 200
_TRY_MS: Final = 100


def run(scenario: Scenario, regions: Regions) -> None:
    """Put regions through a scenario.

    Raises:
        Failed: a step went another way.
    """
    bound: dict[str, bytes] = {}
    for line in scenario.steps.strip().splitlines():
        if line.strip():
            try:
                _step(line.strip(), regions, bound)
            except Failed as failure:
                text = f"{scenario.name} ({scenario.title}): `{line.strip()}`: {failure}"
                raise Failed(text) from None


def _step(line: str, regions: Regions, bound: dict[str, bytes]) -> None:
    everywhere = range(1, regions.count + 1)
    found = _STEP.fullmatch(line)
    if found is None:
        words = line.split()
        numbers = [int(word) for word in words[1:] if word.isdigit()]
        if words[0] == "sync":
            regions.sync(numbers or list(everywhere))
        elif words[0] == "clock":
            regions.set_clock(*numbers)
        elif words[0] == "pass":
            regions.elapse(*numbers)
        elif words[0] in ("keep", "restore"):
            getattr(regions, words[0])(numbers[0], words[2])
        elif words[0] == "cut" and numbers:
            regions.cut_between(*numbers)
        elif words[0] == "fill":
            _fill(regions, numbers[0])
        elif words[0] in _BARE:
            getattr(regions, words[0])(*numbers)
        else:
            raise Failed("this is no step")
        return
    where = found["where"]
    asked, _, expected = found["rest"].partition("=>")
    client = found["client"] or DEFAULT_CLIENT
    for region in everywhere if where in ("both", "all") else (int(where),):
        if not found["asks"]:
            problem = compare(regions.reply(region, client), expected.split(), bound)
        else:
            request = [_bind(word, bound) for word in asked.split()]
            before = _told(regions, region) if found["how"] == "quiet " else None
            problem = compare(regions.call(region, client, request), expected.split(), bound)
            if before is not None and _told(regions, region) != before:
                raise Failed("it left a record for other regions")
            tries = _TRIES if found["how"] == "until " else 0
            while problem and tries:
                tries -= 1
                regions.elapse(_TRY_MS)
                regions.rest()
                problem = compare(regions.call(region, client, request), expected.split(), bound)
        if problem:
            raise Failed(f"in region {region}, {problem}")


def _told(regions: Regions, region: int) -> object:
    """Return how many records a region has written."""
    return regions.call(region, DEFAULT_CLIENT, [b"AA", b"TOKEN"])


def _fill(regions: Regions, region: int) -> None:
    """Write more than the log may keep, twice, so that what went before is in no log any more."""
    for _ in range(2):
        for _ in range(1000):
            value = b"v" * 2000
            regions.call(region, DEFAULT_CLIENT, [b"XADD", b"other", b"*", b"f", value])
        regions.rewrite(region)


def _bind(word: str, bound: dict[str, bytes]) -> bytes:
    if len(word) > 1 and word[0] == "$":
        return bound[word[1:]]
    return word.encode()


def compare(reply: object, expected: list[str], bound: dict[str, bytes]) -> str:
    """Return why a reply is not what was expected; empty where it is. May bind a name."""
    kind = expected[0]
    if kind == "error":
        text = " ".join(expected[1:]).encode()
        if isinstance(reply, Refused) and text in reply.text:
            return ""
        return f"{reply!r} and not an error with {text!r}"
    if kind == "waits":
        return "" if reply is WAITS else f"{reply!r} and no waiting"
    if isinstance(reply, Refused) or reply is WAITS:
        return f"{reply!r}"
    if kind[0] == "$" and len(expected) == 1:
        name = kind[1:]
        if name not in bound:
            bound[name] = reply if isinstance(reply, bytes) else b""
            return ""
    binds = kind == "field" and expected[2] == "is"
    wanted = [_bind(word, bound) for word in expected[: 2 if binds else None]]
    shown: object = reply
    if kind == "nil":
        return "" if reply is None else f"{reply!r} and not nil"
    if kind == "ids":
        shown = entry_ids(reply)
    elif kind == "texts":
        shown = [_list(_list(entry)[1])[-1] for entry in _list(reply)]
    elif kind == "names":
        shown = sorted(str(_field(each, b"name")) for each in _list(reply))
        return "" if shown == sorted(map(str, wanted[1:])) else f"{shown!r} and not {expected[1:]}"
    elif kind == "values":
        shown = reply
    elif kind == "claimed":
        shown = _list(reply)[1]
    elif kind == "distinct":
        ids = entry_ids(reply)
        shown = [b"%d" % len(ids)] if len(set(ids)) == len(ids) else ids
    elif kind == "pending":
        shown = [b"%d" % _int(_list(reply)[0])]
    elif kind == "lanes":
        shown = [b"%d" % len(_list(_field(reply, b"lanes")))]
    elif kind == "field":
        return _compare_field(reply, wanted, expected, bound)
    else:
        shown = [b"%d" % reply if isinstance(reply, int) else reply]
        wanted = [b"", b" ".join(wanted)]
    return "" if shown == wanted[1:] else f"{shown!r} and not {wanted[1:]!r}"


def _compare_field(
    reply: object, wanted: list[bytes], expected: list[str], bound: dict[str, bytes]
) -> str:
    items = _list(reply)
    if items and isinstance(items[0], list):  # of the first group
        items = items[0]
    value = _field(items, wanted[1])
    if expected[2] == "is":
        bound[expected[3][1:]] = value if isinstance(value, bytes) else b""
        return "" if isinstance(value, bytes) else f"{value!r}"
    if wanted[2] in (b"below", b"from"):
        if not isinstance(value, bytes):
            return f"{value!r}"
        is_below = _id(value) < _id(wanted[3])
        return "" if is_below == (wanted[2] == b"below") else f"{value!r}"
    shown = b"%d" % value if isinstance(value, int) else value
    return "" if shown == wanted[2] else f"{value!r}"


def entry_ids(reply: object) -> list[bytes]:
    """The IDs of entries, or of pending ones, in the reply of a command that reads one stream."""
    if reply is None:
        return []
    items = _list(reply)
    if len(items) == 1 and isinstance(items[0], list) and isinstance(items[0][1], list):
        entries = items[0][1]
        if not entries or isinstance(entries[0], list):  # the stream's name, and its entries
            items = entries
    ids = [each[0] if isinstance(each, list) else each for each in items]
    return [each for each in ids if isinstance(each, bytes)]


def _field(items: object, name: bytes) -> object:
    pairs = _list(items)
    for at in range(0, len(pairs), 2):
        if pairs[at] == name:
            return pairs[at + 1]
    raise Failed(f"no field {name!r} in {items!r}")


def _id(text: bytes) -> tuple[int, int]:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq or b"0")


def _list(reply: object) -> list[object]:
    if not isinstance(reply, list):
        raise Failed(f"{reply!r} is no array")
    return reply


def _int(reply: object) -> int:
    if not isinstance(reply, int):
        raise Failed(f"{reply!r} is no number")
    return reply
