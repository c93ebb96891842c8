"""``make fuzz``: sessions by chance on our server and a real one, or broken bytes on ours alone."""

from __future__ import annotations

import argparse
import sys

from support.fuzz.duel import Duel, Fuzz, find_judge
from support.fuzz.malformed import campaign
from support.process import ServerProcess


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=(__doc__ or "").strip())
    parser.add_argument("--malformed", action="store_true", help="broken bytes on our server alone")
    parser.add_argument("--calls", action="store_true", help="calls on our server alone, no judge")
    parser.add_argument("--extremes", action="store_true", help="extreme numbers in every command")
    parser.add_argument(
        "--only", action="append", default=[], help="this chapter of the manual: hash, say"
    )
    parser.add_argument("--drills", action="store_true", help="many calls at once: much faster")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=20_000, help="after how many to stop")
    parser.add_argument("--minutes", type=float, default=0, help="go on for so long instead")
    parser.add_argument("--judge", default="", help="the real server's program")
    parser.add_argument("--session", type=int, default=0, help="begin with the one of this number")
    parser.add_argument("--differences", type=int, default=10, help="how many are enough")
    options = parser.parse_args()
    if options.malformed or options.calls:
        with ServerProcess("--proto-max-bulk-len", "1048576", debug=False) as server:
            campaign(server.port, server.pid, options.commands, options.seed, options.calls)
            server.check_log()
        print("no crash, no hang, no trouble in the log")
        return 0
    judge = options.judge or find_judge()
    if judge is None:
        parser.error("no redis-server found to compare with: `make judges` fetches one")
    with Duel(judge) as duel:
        fuzz = Fuzz(duel, options.seed, options.differences, options.only)
        if options.extremes:
            played = fuzz.run_extremes(options.commands)
        else:
            played = fuzz.run(options.commands, options.minutes, options.session, options.drills)
        print(f"{played} sessions, {duel.player.calls} calls, {len(fuzz.scripts)} differences")
        print(f"known differences met:\n{fuzz.tolerated()}", end="")
        duel.check_log()
    return 1 if fuzz.scripts else 0


if __name__ == "__main__":
    sys.exit(main())
