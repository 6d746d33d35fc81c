"""`python -m bench.diagnosis`: the quality of the diagnosis and the speed of its events.

Quality: 60 generated incidents with a known cause, without a model and with one that insists on
decoys. Speed: a session of 100,000 events, on SQLite and on Postgres.
"""

import argparse
import sys

from bench.diagnosis import quality, speed
from bench.report import table

PARTS = {"quality": quality.lines, "speed": speed.lines}


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis", description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    found = [
        line
        for name, measure in PARTS.items()
        if options.only in (None, name)
        for line in measure()
    ]
    print(table(found))
    return 0 if all(line.holds for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
