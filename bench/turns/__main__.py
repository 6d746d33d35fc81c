"""`python -m bench.turns`: play turns on the real graph, print figures, and fail on a missed bound."""

import argparse
import sys
from pathlib import Path

from bench.report import table
from bench.turns import FILE, turns
from bench.turns.figures import MODES, report
from bench.turns.playing import play


def main() -> int:
    """Play turns. Return the exit status: 0, or 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("--file", nargs="+", type=Path, default=[FILE], help="files of turns")
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES, help="how to play")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="play only these turns")
    parser.add_argument("--show", action="store_true", help="print each failure")
    given = parser.parse_args()
    every = [each for path in given.file for each in turns(path)]
    every = [each for each in every if not given.only or each["id"] in given.only]
    print(f"{len(every)} turns, {sum(each['certain'] for each in every)} certain")
    lines = [
        line for mode in given.mode for line in report(mode, play(every, mode), show=given.show)
    ]
    print(table(lines))
    missed = [line.measure for line in lines if not line.holds]
    if missed:
        print(f"\nmissed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
