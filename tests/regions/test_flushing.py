"""FLUSHALL and DEL of more keys than fit into one transaction that a link carries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.mesh import Mesh

SMALL = ("--proto-max-bulk-len", "1mb", "--aa-transaction-max-bytes", "1mb")  # links carry 2 MB
KEYS = 6000
LONG = "k" * 400


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    """Two regions that have so many streams that their deletions take 3 MB."""
    with Mesh(2, *SMALL) as mesh:
        with mesh[1].client() as client:
            for first in range(0, KEYS, 1000):
                numbers = range(first, first + 1000)
                client.pipeline(*[("XADD", f"{LONG}{n}", "*", "f", "v") for n in numbers])
        mesh.sync()
        assert mesh[2].call("DBSIZE") == KEYS
        yield mesh
        for region in mesh.regions.values():
            region.check_log()


def test_it_reaches_the_other_region(mesh: Mesh) -> None:
    one, two = mesh[1], mesh[2]
    assert one.call("FLUSHALL") == b"OK"
    assert one.call("DBSIZE") == 0
    later = one.xadd("s")
    mesh.sync()
    assert two.call("DBSIZE") == 1
    assert two.ids("s") == [later]
    one.kill()
    one.start_again()
    assert one.call("DBSIZE") == 1
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")


def test_inside_multi_it_is_refused_before_anything_goes(mesh: Mesh) -> None:
    one, two = mesh[1], mesh[2]
    for word in ("FLUSHALL", "FLUSHDB"):
        with one.client() as client:
            client.call("MULTI")
            client.call("XADD", "s", "*", "f", "v")
            client.call(word)
            reply = client.call("EXEC")
            assert reply.startswith(b"*2\r\n$")
            assert reply.endswith(b"(aa-transaction-max-bytes)\r\n")
        assert one.call("DBSIZE") == KEYS + 1
    assert one.call("DEL", *[f"{LONG}{number}" for number in range(KEYS - 1000)]) == KEYS - 1000
    with one.client() as client:
        client.call("MULTI")
        client.call("FLUSHALL")
        assert client.call("EXEC") == b"*1\r\n+OK\r\n"
    mesh.sync()
    assert one.call("DBSIZE") == two.call("DBSIZE") == 0
