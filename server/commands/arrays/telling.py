"""What an array is like: ARLEN, ARCOUNT, ARINFO."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import NO_SUCH_KEY, SYNTAX, CommandError
from headrace.protocol.replies import Map
from headrace.server.commands.arrays.values import array_at, number
from headrace.server.dispatch.call import Call
from headrace.storage.array.array import EXHAUSTED, GREATEST, Array, Walk

_SLICE: Final = 4096
_SLICE_BITS: Final = 12
_SPARSE: Final = 10  # elements up to which a slice of Redis is sparse
_LEAST_SPARSE: Final = 4  # elements that a sparse one has room for; the room doubles
_LEAST_DENSE: Final = 16  # slots of a dense one
_DIRECTORY: Final = 2048  # slices beyond which Redis has a directory of directories


def arlen(call: Call) -> object:
    """Reply: the greatest index and one; 0 without a key."""
    array = array_at(call, call.argv[1])
    return 0 if array is None else number(array.length())


def arcount(call: Call) -> object:
    """Reply: how many elements are there."""
    array = array_at(call, call.argv[1])
    return 0 if array is None else array.size()


def arinfo(call: Call) -> object:
    """Reply: a map, with what Redis would have allocated for the elements that are there."""
    argv = call.argv
    full = len(argv) == 3 and argv[2].upper() == b"FULL"
    if len(argv) > 2 and not full:
        raise CommandError(SYNTAX)
    array = array_at(call, argv[1])
    if array is None:
        raise CommandError(NO_SUCH_KEY)
    slices = array.redis_slices()
    beyond = slices[-1] >= _DIRECTORY if slices else False
    blocks = len({place // _DIRECTORY for place in slices})
    size = 1 << slices[-1].bit_length() if slices and not beyond else max(4, blocks)
    pairs: list[tuple[object, object]] = [
        (b"count", array.size()),
        (b"len", number(array.length())),
        (b"next-insert-index", 0 if array.cursor == EXHAUSTED else number(array.cursor)),
        (b"slices", len(slices)),
        (b"directory-size", size),
        (b"super-dir-entries", blocks if beyond else 0),
        (b"slice-size", _SLICE),
    ]
    if full:
        pairs += _Slices(array).shown()
    return Map(pairs)


class _Slices:
    """How Redis keeps the slices of an array whose elements have come from the lowest up."""

    def __init__(self, array: Array) -> None:
        self._dense = 0
        self._dense_slots = 0
        self._dense_elements = 0
        self._sparse = 0
        self._sparse_room = 0
        walk = Walk(array, 0, GREATEST, False)
        at = -1
        count = 0
        first = 0
        last = 0
        while walk.step():
            if walk.base >> _SLICE_BITS != at:
                self._add(count, last - first + 1)
                at = walk.base >> _SLICE_BITS
                count = 0
                first = walk.base + (walk.mask & -walk.mask).bit_length() - 1
            count += walk.mask.bit_count()
            last = walk.base + walk.mask.bit_length() - 1
        self._add(count, last - first + 1)

    def _add(self, count: int, span: int) -> None:
        if count > _SPARSE:
            self._dense += 1
            self._dense_elements += count
            self._dense_slots += max(_LEAST_DENSE, _power_of_two(span))
        elif count:
            self._sparse += 1
            self._sparse_room += min(_SPARSE, max(_LEAST_SPARSE, _power_of_two(count)))

    def shown(self) -> list[tuple[object, object]]:
        """The pairs of ARINFO FULL."""
        return [
            (b"dense-slices", self._dense),
            (b"sparse-slices", self._sparse),
            (b"avg-dense-size", self._dense_slots / self._dense if self._dense else 0.0),
            (b"avg-dense-fill", self._dense_elements / self._dense_slots if self._dense else 0.0),
            (b"avg-sparse-size", self._sparse_room / self._sparse if self._sparse else 0.0),
        ]


def _power_of_two(least: int) -> int:
    """The lowest power of two that is not below a number."""
    return 1 << (least - 1).bit_length()
