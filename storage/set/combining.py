"""What several sets have in common, together, or one alone.

A set may be None, which is one without members. Members come in the order in which Redis finds
them, where that order can be known.
Source: t_set.c, sinterGenericCommand, sunionDiffGenericCommand.
"""

from __future__ import annotations

from headrace.storage.packed.strings import unpack
from headrace.storage.set.integers import integer_of
from headrace.storage.set.limits import SetLimits
from headrace.storage.set.set import INTSET, Set


def intersection(sets: list[Set | None], most: int) -> list[bytes]:
    """The members that all of the sets have, up to ``most`` of them.

    Complexity: O(N * M), N being the size of the smallest set and M the number of sets.
    """
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
    """The members that any of the sets has, up to ``most`` of them; in order if all are integers.

    Complexity: O(members of all sets).
    """
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
    """The members of the first set that no other one has.

    Complexity: O(N * M), N being the size of the first set and M the number of sets, or O(members
    of all sets), whichever is less.
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
    """As ``difference``, as a set, which has turned large if it has ever held too much for a small.

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
    """Whether a difference looks for each member of the first set in the others.

    Otherwise it takes the members of the others out. The first way is thought to cost half of what
    it does at worst.
    """
    first = sets[0]
    work = 0
    other_work = 0
    for each in present(sets):
        work += 0 if first is None else first.size()
        other_work += each.size()
    return work // 2 <= other_work


def are_integers(sets: list[Set]) -> bool:
    """Whether all of them hold integers in order, and so does what is made of them."""
    return all(each.encoding(b"") == INTSET for each in sets)


def present(sets: list[Set | None]) -> list[Set]:
    """Those that there are."""
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
