"""`python -m bench.diagnosis`: what the diagnosis makes of recorded incidents, and its speed.

    python -m bench.diagnosis --incidents FOLDER [--results FILE]
    python -m bench.diagnosis --only speed

Incidents are worked with the model of the environment, or without one. Speed: a session of 100,000 events,
on SQLite and on Postgres, and a log of 500,000 lines.
"""

import argparse
import sys
from pathlib import Path

from bench.diagnosis import recorded, speed
from bench.report import Line, table


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis", description=__doc__)
    parser.add_argument("--incidents", type=Path, help="a folder of recorded incidents")
    parser.add_argument("--results", type=Path, help="where to write what was said of each")
    parser.add_argument("--only", choices=["speed"])
    options = parser.parse_args()
    found: list[Line] = []
    if options.incidents is not None and options.only is None:
        found += recorded.lines(options.incidents, options.results)
    if options.incidents is None or options.only == "speed":
        found += speed.lines()
    print(table(found))
    return 0 if all(line.holds for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
