"""Regions compare what they have: fingerprints by hand, and those that they exchange themselves."""

from __future__ import annotations

from support.mesh import Mesh, RegionProcess, wait_until

OFTEN = ("--aa-beat-ms", "10")


def checks(region: RegionProcess) -> int:
    return int(region.info("activeactive")["aa_checks"])


def mismatches(region: RegionProcess) -> int:
    return int(region.info("activeactive")["aa_check_mismatches"])


def test_a_fingerprint_says_whether_two_regions_agree(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    two_regions.pause()
    for number in range(300):
        one.xadd("s", "*", "number", str(number))
    two.xadd("s")
    one.call("XGROUP", "CREATE", "s", "g", "0")
    assert one.call("AA", "DIGEST", "s") != two.call("AA", "DIGEST", "s")
    two_regions.sync()
    for words in (("AA", "DIGEST", "s"), ("AA", "DIGEST", "s", "NEWEST", "7")):
        digest = one.call(*words)
        assert isinstance(digest, bytes)
        assert len(digest) == 40
        assert two.call(*words) == digest
    assert one.call("AA", "STREAM", "s") == two.call("AA", "STREAM", "s")
    assert one.call("AA", "DIGEST", "none") is None
    assert one.call("AA", "DIGEST", "s", "NEWEST", "1") != one.call("AA", "DIGEST", "s")


def test_the_newest_entries_alone_are_looked_at(two_regions: Mesh) -> None:
    one = two_regions[1]
    ids = [one.xadd("s", "*", "number", str(number)) for number in range(300)]
    newest = one.call("AA", "DIGEST", "s", "NEWEST", "7")
    for entry_id in (ids[-1], ids[0]):  # how many there are counts, too
        one.call("XDEL", "s", entry_id)
        assert one.call("AA", "DIGEST", "s", "NEWEST", "7") != newest
        newest = one.call("AA", "DIGEST", "s", "NEWEST", "7")


def test_regions_that_agree_find_that_they_do() -> None:
    with Mesh(2, *OFTEN) as mesh:
        for region in mesh.regions.values():
            for key in ("s", "t"):
                region.xadd(key)
        for region in mesh.regions.values():
            wait_until(lambda region=region: checks(region) > 1, region)
            assert mismatches(region) == 0


def test_a_stream_that_differs_is_told_loudly() -> None:
    with Mesh(2, *OFTEN) as mesh:
        one, two = mesh[1], mesh[2]
        one.xadd("s", "*", "greeting", "hello")
        two.sync()
        two.stop()
        [file] = (two.directory / "appendonlydir").glob("*.incr.aof")
        text = file.read_bytes()
        assert text.count(b"hello") == 1
        with file.open("r+b") as there:  # as no bug should
            there.write(text.replace(b"hello", b"jello"))
        two.start_again()
        for region, other in ((one, 2), (two, 1)):
            wait_until(lambda region=region: mismatches(region) > 0, region)
            assert region.info("activeactive")["aa_check_mismatch_key"] == "s"
            region.wait_for_log(f"Region {other}: the stream s is not the same there and here")
