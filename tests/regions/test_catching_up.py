"""A region that takes much from another one goes on to answer its clients."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from support.mesh import Mesh

ENTRIES = 60_000
AT_ONCE = 1000
SLICE_MOST = 4000  # of the records that come between two answers: a slice applies fewer


def test_clients_are_answered_between_the_slices() -> None:
    with Mesh(2) as mesh:
        mesh.wait_until_level()
        two = mesh[2]
        two.call("AA", "PAUSE", "ALL")
        with mesh[1].client() as client:
            for _ in range(ENTRIES // AT_ONCE):
                client.pipeline(*[("XADD", "s", "*", "field", "value")] * AT_ONCE)
        lengths = [0]
        with two.client() as client:
            client.call("AA", "RESUME", "ALL")
            while lengths[-1] < ENTRIES:
                length = client.call_parsed("XLEN", "s")
                assert isinstance(length, int)
                lengths.append(length)
        grown = [after - before for before, after in pairwise(lengths)]
        assert median([each for each in grown if each]) < SLICE_MOST, grown
