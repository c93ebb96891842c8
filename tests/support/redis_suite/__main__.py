"""``make redis-suite``: units of Redis's own tests, on our server and a real one."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from support.judges import JUDGES
from support.process import Process, RedisProcess, ServerProcess, claim_port
from support.redis_suite import expected
from support.redis_suite.units import BETWEEN, FAILED, IGNORED, PASSED, SETTINGS, Outcome, run

UNITS: Final = (
    "unit/type/list", "unit/type/list-2", "unit/type/list-3", "unit/type/hash",
    "unit/type/hash-field-expire", "unit/type/set", "unit/type/zset", "unit/sort", "unit/bitops",
    "unit/bitfield", "unit/hyperloglog", "unit/geo", "unit/scan", "unit/expire", "unit/keyspace",
    "unit/other", "unit/dump", "unit/type/string", "unit/type/incr", "unit/type/stream",
    "unit/type/stream-cgroups", "unit/scripting", "unit/functions", "unit/tracking",
    "unit/introspection", "unit/introspection-2", "unit/querybuf", "unit/multi", "unit/pubsub",
    "unit/slowlog", "unit/latency-monitor", "unit/protocol",
    "unit/maxmemory", "unit/client-eviction", "unit/obuf-limits",
)  # fmt: skip
_SHOWN: Final = 200  # characters of a reason that are printed


class Comparison(NamedTuple):
    """What became of a unit.

    Attributes:
        ours, real: the number of tests passed.
        ignored: those not meant for an external server.
        known: tests that only the real server passes, as is meant to be.
        missed: such tests that nobody has foreseen, and why.
        between: errors outside of tests that only our server has.
    """

    ours: int
    real: int
    ignored: int
    known: list[str]
    missed: list[tuple[str, str]]
    between: list[str]


def _passed(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(outcome.name for outcome in outcomes if outcome.status == PASSED)


def compare(unit: str, ours: list[Outcome], real: list[Outcome]) -> Comparison:
    """Return what only the real server passes."""
    our_passed, real_passed = _passed(ours), _passed(real)
    why = {outcome.name: outcome.reason for outcome in ours if outcome.status == FAILED}
    known = expected.known(unit)
    missing = list((real_passed - our_passed).elements())
    told = {outcome.name for outcome in real if outcome.status == BETWEEN}
    return Comparison(
        ours=our_passed.total(),
        real=real_passed.total(),
        ignored=sum(outcome.status == IGNORED for outcome in real),
        known=[name for name in missing if name in known],
        missed=[(name, why.get(name, "was not run")) for name in missing if name not in known],
        between=[each.name for each in ours if each.status == BETWEEN and each.name not in told],
    )


def both(suite: Path, unit: str, judge: str, options: list[str], tls: bool) -> Comparison:
    """Run a unit on both servers at once."""
    our_port, our_claim = claim_port()
    real_port, real_claim = claim_port()

    def encrypted(port: int) -> list[str]:
        return ["--tls-port", str(port), *_certificates(suite)] if tls else []

    def our_server() -> Process:
        return ServerProcess(
            *(*SETTINGS, "--enable-debug-command", "yes", *encrypted(our_port)),
            debug=False,
            check_log=False,
        )

    def real_server() -> Process:
        return RedisProcess(*SETTINGS, *encrypted(real_port), program=judge)

    if tls:
        options = ["--tls", *options]
    with our_claim, real_claim, ThreadPoolExecutor(2) as threads:
        ours = threads.submit(run, suite, our_server, unit, options, our_port * tls)
        real = threads.submit(run, suite, real_server, unit, options, real_port * tls)
        return compare(unit, ours.result(), real.result())


def _certificates(suite: Path) -> list[str]:
    """Options of a server with the certificates that the suite makes for itself."""
    folder = suite / "tests" / "tls"
    if not (folder / "redis.dh").exists():
        subprocess.run(["sh", "utils/gen-test-certs.sh"], cwd=suite, check=True, timeout=300)
    return [
        *("--tls-cert-file", str(folder / "server.crt")),
        *("--tls-key-file", str(folder / "server.key")),
        *("--tls-ca-cert-file", str(folder / "ca.crt")),
        *("--tls-dh-params-file", str(folder / "redis.dh")),
    ]


def _short(reason: str, whole: bool) -> str:
    words = " ".join(reason.split())
    return words if whole or len(words) <= _SHOWN else words[:_SHOWN] + " ..."


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="make redis-suite", description=(__doc__ or "").strip())
    parser.add_argument("units", nargs="*", default=UNITS, help="as unit/type/list; or else all")
    parser.add_argument("--only", action="append", default=[], help="this test, /REGEXP or all")
    parser.add_argument("--judge", default="redis-8.0", help="the real server: a name, or its path")
    parser.add_argument("--suite", type=Path, required=True, help="the folder of Redis's sources")
    parser.add_argument(
        "--tls", action="store_true", help="over encrypted connections; Tcl needs its package tls"
    )
    parser.add_argument("--whole", action="store_true", help="print reasons in full length")
    words = parser.parse_args()
    if shutil.which("tclsh") is None:
        parser.error("tclsh is not there: the package tcl brings it")
    judge = next((each.program() for each in JUDGES if each.name == words.judge), words.judge)
    if judge is None:
        parser.error(f"{words.judge} is not there: `make judges` fetches it")
    options = [word for name in words.only for word in ("--only", name)]
    unforeseen = 0
    for unit in words.units:
        begun = time.monotonic()
        found = both(words.suite.resolve(), unit, judge, options, words.tls)
        unforeseen += len(found.missed)
        print(
            f"{unit}: ours passes {found.ours}, the real one {found.real}; "
            f"{len(found.known)} known to differ, {len(found.missed)} not; "
            f"{found.ignored} not for such a server; {time.monotonic() - begun:.0f} s"
        )
        for error in found.between:
            print(f"    between tests: {_short(error, words.whole)}")
        for name, reason in found.missed:
            print(f"  - {name}\n      {_short(reason, words.whole)}")
        sys.stdout.flush()
    return 1 if unforeseen else 0


if __name__ == "__main__":
    sys.exit(main())
