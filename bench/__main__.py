"""`python -m bench [--quick] [--only ROW] [--before FOLDER]`: measure, print, record, and fail on a missed bound."""

import argparse
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from bench import report
from bench.rows import MEASURES, named
from bench.stage import QUICK, Scale, Stage


async def measured(scale: Scale, names: list[str], before: Path | None) -> list[report.Line]:
    lines: list[report.Line] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        async with AsyncExitStack() as stack:
            stage = Stage(Path(scratch), scale, stack, before)
            for name in names:
                begun = time.monotonic()
                found = await MEASURES[name](stage)
                lines += found
                print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
                print(report.table(found), file=sys.stderr, flush=True)
    return lines


def main() -> int:
    """Run the benchmark. Return the exit status: 0, or 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="90 s with few samples; verdicts are unreliable"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="ROW",
        help="a row, or a group such as `event` or `abuse`; may be repeated",
    )
    parser.add_argument(
        "--before",
        type=Path,
        help="a checkout of an older state of this project, which some rows then compare with",
    )
    options = parser.parse_args()
    try:
        names = [name for row in options.only or MEASURES for name in named(row)]
    except ValueError as error:
        parser.error(str(error))
    scale = QUICK if options.quick else Scale()
    lines = uvloop.run(measured(scale, names, options.before))
    text = report.table(lines)
    print(f"\n{report.machine()}\n\n{text}")
    if not (options.quick or options.only or options.before):
        report.write(f"{report.machine()}\n\n{text}")
    missed = [line.measure for line in lines if not line.holds]
    if missed:
        print(f"\nmissed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
