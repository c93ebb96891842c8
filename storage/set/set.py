"""A set in memory, and what several sets have in common.

It is one of three things, and turns from one to a later one and never back:

==========================  ==================  ==========================================
what it is                  OBJECT ENCODING     when
==========================  ==================  ==========================================
``bytes``, see integers.py  ``intset``          its members are integers, and not too many
``bytes``, see small.py     ``listpack``        it is small
``Table``                   ``hashtable``       it is large
==========================  ==================  ==========================================

What turns it, and when, is visible to clients, and the same as in Redis.
Source: t_set.c, setTypeCreate, setTypeMaybeConvert, setTypeAddAux.

**Several sets.** A set may be None, which is one without members. Members come in the order in
which Redis finds them, where that order can be known. Source: t_set.c, sinterGenericCommand,
sunionDiffGenericCommand.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.collection import Collection
from headrace.storage.digest import Digest
from headrace.storage.packed.strings import next_at, pack, packed_string, string_at, unpack
from headrace.storage.packed.table import HASH_BITS, MEMBERS, Table, find_element, mixed, new_seed
from headrace.storage.set import integers, small
from headrace.storage.set.integers import NO_INTEGERS, integer_of, spells_integer, text_of
from headrace.storage.set.small import HEAD, NO_MEMBERS, SetLimits

SET: Final = b"set"
INTSET: Final = b"intset"
LISTPACK: Final = b"listpack"
HASHTABLE: Final = b"hashtable"
_DIGEST_NUMBER: Final = 2
_OBJECT_BYTES: Final = 32
_SCATTERED: Final[i64] = 10_000
_BYTES_HEADER: Final = 33


@mypyc_attr(acyclic=True)
class Set(Collection):
    """Members without an order, each of them once; ``rep`` is what it is: see the module."""

    def __init__(self, rep: bytes | Table = NO_INTEGERS) -> None:
        self.rep = rep

    # Members

    def has(self, member: bytes) -> bool:
        """Return whether it is in the set."""
        rep = self.rep
        if isinstance(rep, Table):
            return rep.has(member)
        if read_i16_le(rep, 0) >= 0:
            return find_element(rep, member, MEMBERS, HEAD) >= 0
        return spells_integer(member) and integers.find(rep, integer_of(member)) >= 0

    def scattered_table(self) -> Table | None:
        rep = self.rep
        return rep if isinstance(rep, Table) and rep.count >= _SCATTERED else None

    def add(self, member: bytes, limits: SetLimits) -> bool:
        """Add a member; False if it is there already."""
        rep = self.rep
        if isinstance(rep, Table):
            return rep.add(member)
        count = i64(read_i16_le(rep, 0))
        if count < 0:
            return self._add_to_integers(rep, member, limits)
        if find_element(rep, member, MEMBERS, HEAD) >= 0:
            return False
        if _is_full(count, limits) or len(member) > limits.element_bytes:
            self._turn_large().add(member)
        else:
            self.rep = small.with_member(rep, member)
        return True

    def _add_to_integers(self, rep: bytes, member: bytes, limits: SetLimits) -> bool:
        if spells_integer(member):
            number = integer_of(member)
            index = integers.find(rep, number)
            if index >= 0:
                return False
            rep = integers.with_number(rep, ~index, number)
            self.rep = rep
            if integers.count_of(rep) > limits.integers:
                self._turn_large()
            return True
        count = integers.count_of(rep)
        longest = max(integers.longest_text(rep), i64(len(member)))
        if _is_full(count, limits) or longest > limits.element_bytes:
            self._turn_large().add(member)
        else:
            self.rep = small.with_member(small.small_of(integers.packed(rep), count), member)
        return True

    def expect(self, count: i64, limits: SetLimits) -> None:
        """Turn a small set large if ``count`` members, which come at once, would not fit in one."""
        rep = self.rep
        if isinstance(rep, bytes):
            most = limits.integers if read_i16_le(rep, 0) < 0 else limits.elements
            if count > most:
                self._turn_large()

    def _turn_large(self) -> Table:
        table = Table(MEMBERS, new_seed())
        for member in self.members():
            table.add(member)
        self.rep = table
        return table

    def remove(self, member: bytes) -> bool:
        """Take a member out; False if it is not there."""
        rep = self.rep
        if isinstance(rep, Table):
            return rep.remove(member)
        if read_i16_le(rep, 0) >= 0:
            place = find_element(rep, member, MEMBERS, HEAD)
            if place >= 0:
                self.rep = small.without(rep, place)
            return place >= 0
        index = integers.find(rep, integer_of(member)) if spells_integer(member) else -1
        if index >= 0:
            self.rep = integers.without(rep, index)
        return index >= 0

    def pieces(self) -> list[bytes]:
        """Return all members, packed: each piece holds some, in order."""
        found: list[bytes] = []
        for directory in self.directories():
            found += directory
        return found

    def directories(self) -> list[list[bytes]]:
        """Return all pieces, some of them at a time; they are not to be changed."""
        rep = self.rep
        return rep.directories if isinstance(rep, Table) else [[_small_piece(rep)]]

    def small_piece(self) -> bytes | None:
        """Return all members of a small set, packed, in order; None of a large one."""
        rep = self.rep
        return _small_piece(rep) if isinstance(rep, bytes) else None

    def members(self) -> list[bytes]:
        """Return all members, in order."""
        found: list[bytes] = []
        for piece in self.pieces():
            found += unpack(piece)
        return found

    def scan(self, cursor: i64, least: i64, found: list[bytes]) -> i64:
        """Add pieces, a small set's at once, to ``found``; return the next cursor; 0: the end."""
        rep = self.rep
        if isinstance(rep, Table):
            return rep.scan(cursor, least, found)
        found += self.pieces()
        return 0

    # Chance

    def random(self, bits: i64) -> bytes:
        """Return a random member of a set that has some, chosen by SEED_BITS random ``bits``."""
        rep = self.rep
        if isinstance(rep, Table):
            return string_at(rep.random(bits), 0)
        if read_i16_le(rep, 0) >= 0:
            return string_at(rep, _place_by_chance(rep, bits))
        return text_of(integers.number_at(rep, _by_chance(integers.count_of(rep), bits)))

    def random_packed(self, bits: i64) -> bytes:
        """Return a random member as ``random``, packed."""
        rep = self.rep
        return rep.random(bits) if isinstance(rep, Table) else packed_string(self.random(bits))

    def take_random(self, bits: i64) -> bytes:
        """Take out a random member and return it, as ``random``."""
        rep = self.rep
        if isinstance(rep, Table):
            return string_at(rep.take_random(bits), 0)
        if read_i16_le(rep, 0) >= 0:
            place = _place_by_chance(rep, bits)
            self.rep = small.without(rep, place)
            return string_at(rep, place)
        index = _by_chance(integers.count_of(rep), bits)
        self.rep = integers.without(rep, index)
        return text_of(integers.number_at(rep, index))

    def replaced_by(self, members: list[bytes], limits: SetLimits) -> Set:
        """Replace the members by these, all of them different; return what it was.

        It is made anew, and so it may be small where it was large.
        """
        old = Set(self.rep)
        self.rep = NO_MEMBERS
        for member in members:
            self.add(member, limits)
        return old

    # The face

    def type_name(self) -> bytes:
        return SET

    def encoding(self, key: bytes) -> bytes:
        rep = self.rep
        if isinstance(rep, Table):
            return HASHTABLE
        return LISTPACK if read_i16_le(rep, 0) >= 0 else INTSET

    def size(self) -> int:
        rep = self.rep
        if isinstance(rep, Table):
            return rep.count
        count = i64(read_i16_le(rep, 0))
        return count if count >= 0 else integers.count_of(rep)

    def used_bytes(self, samples: int) -> int:
        rep = self.rep
        if isinstance(rep, Table):
            return _OBJECT_BYTES + rep.used_bytes()
        return _OBJECT_BYTES + _BYTES_HEADER + len(rep)

    def copy(self) -> Set:
        rep = self.rep
        return Set(rep.copy() if isinstance(rep, Table) else rep)

    def effort(self) -> int:
        rep = self.rep
        return rep.effort() if isinstance(rep, Table) else 0

    def free_some(self, most: int) -> bool:
        rep = self.rep
        return rep.free_some(most) if isinstance(rep, Table) else True

    def add_to(self, digest: Digest) -> None:
        digest.mix_type(_DIGEST_NUMBER)
        for member in self.members():
            digest.toggle(member)


def new_set(first: bytes, count: i64, limits: SetLimits) -> Set:
    """Return an empty set to which so many members come at once, and this one first."""
    if count <= limits.integers and spells_integer(first):
        return Set()
    return Set(NO_MEMBERS if count <= limits.elements else Table(MEMBERS, new_seed()))


def set_of(members: list[bytes], limits: SetLimits) -> Set:
    """Return a set of members that are all different, in the smallest form that takes them."""
    all_integers = len(members) <= limits.integers
    for member in members:
        if not spells_integer(member):
            all_integers = False
            break
    made = Set(NO_INTEGERS if all_integers else NO_MEMBERS)
    for member in members:
        made.add(member, limits)
    return made


def packed_set(members: list[bytes], most: i64) -> Set | None:
    """Return a set of members in this order, small up to ``most``; None if one comes twice."""
    count: i64 = len(members)
    if count <= most and count <= small.MOST:
        twice = len(set(members)) < count
        return None if twice else Set(small.small_of(pack(members), count))
    table = Table(MEMBERS, new_seed())
    for member in members:
        if not table.add(member):
            return None
    return Set(table)


def flaw_of(value: Set) -> str:
    """Return what is wrong with an untrusted set; empty if nothing is. Complexity: O(members)."""
    rep = value.rep
    if isinstance(rep, Table):
        return rep.flaw()
    if read_i16_le(rep, 0) >= 0:
        return small.flaw_of(rep)
    return "" if integers.is_sound(rep) else "integers that are not in order"


def _small_piece(rep: bytes) -> bytes:
    return rep[HEAD:] if read_i16_le(rep, 0) >= 0 else integers.packed(rep)


def _is_full(count: i64, limits: SetLimits) -> bool:
    return count >= limits.elements or count >= small.MOST


def _by_chance(count: i64, bits: i64) -> i64:
    return (mixed(0, bits) * count) >> HASH_BITS


def _place_by_chance(rep: bytes, bits: i64) -> i64:
    return next_at(rep, HEAD, _by_chance(small.count_of(rep), bits))


def intersection(sets: list[Set | None], most: int) -> list[bytes]:
    """Return up to ``most`` members that all of the sets have. O(smallest set * number of sets)."""
    there = present(sets)
    found: list[bytes] = []
    if len(there) < len(sets):
        return found
    there.sort(key=_size)
    others = there[1:]
    for directory in there[0].directories():
        for piece in directory:
            for member in unpack(piece):
                if _all_have(others, member):
                    found.append(member)
                    if len(found) == most:
                        return found
    return found


def union(sets: list[Set | None], most: int) -> list[bytes]:
    """Return up to ``most`` members that any set has; in order if all are integers. O(members)."""
    there = present(sets)
    if len(there) == 1:
        return there[0].members()
    found: dict[bytes, None] = {}
    for each in there:
        for directory in each.directories():
            for piece in directory:
                for member in unpack(piece):
                    found[member] = None
                if len(found) >= most:
                    return list(found)
    members = list(found)
    if are_integers(there):
        members.sort(key=_number)
    return members


def difference(sets: list[Set | None]) -> list[bytes]:
    """Return the members of the first set that no other one has.

    Complexity: O(first set * number of sets), or O(members of all sets), whichever is less.
    """
    first = sets[0]
    if first is None or _is_there_again(first, sets):
        return []
    others = present(sets[1:])
    if looks_up_in_others(sets):
        others.sort(key=_size, reverse=True)
        return [member for member in first.members() if not _any_has(others, member)]
    left = dict.fromkeys(first.members())
    for each in others:
        for member in each.members():
            left.pop(member, None)
        if not left:
            break
    return list(left)


def stored_difference(sets: list[Set | None], limits: SetLimits) -> Set:
    """Return the difference as a set, which is large if it ever held too much for a small one.

    It has held all of the first set, if that is how the difference was found.
    """
    made = Set()
    first = sets[0]
    if first is None or _is_there_again(first, sets) or looks_up_in_others(sets):
        for member in difference(sets):
            made.add(member, limits)
        return made
    for member in first.members():
        made.add(member, limits)
    for each in present(sets[1:]):
        for member in each.members():
            made.remove(member)
        if made.is_empty():
            break
    return made


def looks_up_in_others(sets: list[Set | None]) -> bool:
    """Return whether a difference looks for each member of the first set in the others.

    Else it takes the members of the others out. The first way is thought to cost half of its worst.
    """
    first = sets[0]
    work = 0
    other_work = 0
    for each in present(sets):
        work += 0 if first is None else first.size()
        other_work += each.size()
    return work // 2 <= other_work


def are_integers(sets: list[Set]) -> bool:
    """Return whether all of them hold integers in order, and so does what is made of them."""
    return all(each.encoding(b"") == INTSET for each in sets)


def present(sets: list[Set | None]) -> list[Set]:
    """Return the sets that are not None."""
    return [each for each in sets if each is not None]


def _is_there_again(first: Set, sets: list[Set | None]) -> bool:
    return any(each is first for each in sets[1:])


def _all_have(sets: list[Set], member: bytes) -> bool:
    for each in sets:
        if not each.has(member):
            return False
    return True


def _any_has(sets: list[Set], member: bytes) -> bool:
    for each in sets:
        if each.has(member):
            return True
    return False


def _size(each: Set) -> int:
    return each.size()


def _number(member: bytes) -> int:
    return int(integer_of(member))
