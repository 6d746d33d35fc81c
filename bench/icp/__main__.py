"""`python -m bench.icp [MEASURE ...]`: run the measures of the ICP finder, and fail on a missed bound."""

import argparse
import sys
from collections.abc import Callable, Sequence

from bench.icp import industries, ranking
from bench.report import Line, table

MEASURES: dict[str, Callable[[], Sequence[Line]]] = {
    "ranking": ranking.lines,
    "industries": industries.lines,
}
"""Each measure by its name. A measure prints its details and returns the lines of the table."""


def main() -> int:
    """Run the measures. Return the exit status: 0, or 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.icp", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(MEASURES))
    names = parser.parse_args().measures or list(MEASURES)
    if unknown := sorted(set(names) - MEASURES.keys()):
        parser.error(f"unknown measure {unknown[0]!r}: choose from {', '.join(MEASURES)}")
    lines = [line for name in names for line in MEASURES[name]()]
    print(table(lines))
    missed = [line.measure for line in lines if not line.holds]
    if missed:
        print(f"\nmissed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
