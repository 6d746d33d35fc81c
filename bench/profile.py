"""`python -m bench.profile [--runs N]`: where the CPU time of single runs goes, by part.

A child process serves the bench's graphs under cProfile, in all its threads. The parent sends runs one
after the other. cProfile makes calls slower, so the shares say more than the times.
"""

import argparse
import asyncio
import cProfile
import pstats
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from bench import load
from bench.report import machine
from bench.servers import ours

# The first pattern in a function's path decides its part. Functions in C count where they are called.
PARTS = (
    ("langgraph_runtime_sql/checkpoint", "ours: checkpoints"),
    ("langgraph_runtime_sql/database", "ours: database access, with SQLite"),
    ("langgraph_runtime_sql/", "ours: operations, queue, event log"),
    ("threadhold/", "ours: ASGI layers, log lines"),
    ("langgraph_api/", "langgraph-api"),
    ("langgraph/checkpoint/", "langgraph's savers"),
    ("langgraph", "langgraph, langchain_core"),
    ("langsmith/", "langgraph, langchain_core"),
    ("langchain_core/", "langgraph, langchain_core"),
    ("pydantic", "langgraph, langchain_core"),
    ("starlette/", "Starlette, uvicorn, anyio"),
    ("uvicorn/", "Starlette, uvicorn, anyio"),
    ("anyio/", "Starlette, uvicorn, anyio"),
    ("structlog/", "structlog, logging"),
    ("logging/", "structlog, logging"),
)
REST = "asyncio, threads, the rest"
# What only waits.
WAITS = ("acquire", "'poll' of", "select", "sleep", "wait", "SimpleQueue")
Function = tuple[str, int, str]


def serve(output: str, arguments: list[str]) -> None:
    """Serve until SIGTERM with a profile of each thread, and write them all to `output`."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: Any) -> None:
        sys.setprofile(None)
        profiles.append(cProfile.Profile())
        profiles[-1].enable()

    # uvicorn raises the signal again after its own stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.setprofile(begin)
    profiles.append(cProfile.Profile())
    profiles[0].enable()
    from server.cli import main

    try:
        main(["serve", *arguments], standalone_mode=False)
    finally:
        for each in profiles:
            each.disable()
        found = pstats.Stats(profiles[0])
        for each in profiles[1:]:
            found.add(each)
        found.dump_stats(output)


def shares(stats: dict[Function, Any]) -> Counter[str]:
    """Return the seconds of each part."""
    found: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in stats.items():
        path, _, name = function
        if path != "~":
            found[_part(path)] += own
        elif not any(word in name for word in WAITS):
            for (caller, _, _), (_, _, share, _) in callers.items():
                found[_part(caller)] += share
    return found


def _part(path: str) -> str:
    return next((part for pattern, part in PARTS if pattern in path), REST)


async def _measure(runs: int, profile: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="profile-") as scratch:
        command = [sys.executable, "-m", "bench.profile", "--serve", str(profile)]
        async with ours(Path(scratch), program=command) as server, server.client() as client:
            for _ in range(runs):
                await load.echo_on_thread(client)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    options, arguments = parser.parse_known_args()
    if options.serve is not None:
        serve(options.serve, arguments)
        return
    with tempfile.NamedTemporaryFile(suffix=".prof") as file:
        asyncio.run(_measure(0, Path(file.name)))
        idle = shares(pstats.Stats(file.name).stats)  # type: ignore[attr-defined]
        asyncio.run(_measure(options.runs, Path(file.name)))
        busy = shares(pstats.Stats(file.name).stats)  # type: ignore[attr-defined]
    # The start is in both.
    busy.subtract(idle)
    total = sum(busy.values())
    print(f"{machine()}\n\n| part | share |\n|---|---|")
    for part, seconds in busy.most_common():
        print(f"| {part} | {seconds / total:.0%} |")


if __name__ == "__main__":
    main()
