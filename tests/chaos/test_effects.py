"""A server is killed again and again while runs pay: no payment is made twice or lost unsaid."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from click.testing import CliRunner

from tests.chaos.victim import Victim
from tests.support import databases
from tests.support.http_server import QuietHandler, answering
from threadhold.cli import main

pytestmark = pytest.mark.usefixtures("each_database")

KILLS = 5
RUNS = 6


@contextmanager
def payments() -> Iterator[tuple[str, list[str]]]:
    """Take payments, slowly. Yield the address and the ids of the payments made."""
    made: list[str] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            made.append(body["effect"])
            time.sleep(0.05)
            try:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"paid " + body["node"].encode())
            except ConnectionError:
                # The server was killed while it waited.
                return

    with answering(Handler) as url:
        yield url, made


@pytest.mark.timeout(600)
def test_kill_loop_pays_nothing_twice_and_loses_nothing_silently(
    victim: Victim, rng: Random
) -> None:
    victim.start(lease=2.0)
    with payments() as (url, made):
        started = []
        for _ in range(RUNS):
            thread = victim.thread()
            started.append((thread, victim.run(thread, "payment", {"url": url})))
        for _ in range(KILLS):
            # After some payments, at any moment of the next one.
            goal = len(made) + 1
            victim.await_(lambda goal=goal: len(made) >= goal or _all_ended(victim))
            time.sleep(rng.uniform(0, 0.08))
            victim.kill()
            victim.start(lease=2.0)
        ends = [victim.ended(*each) for each in started]
        paid = Counter(made)
        assert set(paid.values()) == {1}
        rows = dict(victim.sql("SELECT CAST(effect_id AS TEXT), status FROM effects"))
        # Each payment is known as done or unknown.
        assert set(paid) <= set(rows)
        unknown = {key for key, status in rows.items() if status != "done"}
        assert {key for key, status in rows.items() if status == "done"} <= set(paid)
        # A run without an answer says so, and doctor names its effect.
        findings = victim.findings()
        for key in unknown:
            assert any(key in each for each in findings)
        for (thread, _), end in zip(started, ends, strict=True):
            state = victim.get(f"/threads/{thread}/state")["values"]
            if end == "success":
                assert state["receipts"] == ["paid a", "paid b", "paid c"]
            else:
                # The other error is that of a run that was killed too often.
                error = victim.get(f"/threads/{thread}")["error"]["error"]
                assert error in ("EffectUnknown", "RuntimeError")
        _resolve(victim, unknown, set(paid))
        for (thread, _), end in zip(started, ends, strict=True):
            if end != "success":
                again = victim.post(f"/threads/{thread}/runs", {"assistant_id": "payment"})
                assert victim.ended(thread, again["run_id"]) == "success"
        assert set(Counter(made).values()) == {1}
        assert len(made) == 3 * RUNS


def _all_ended(victim: Victim) -> bool:
    return not victim.sql("SELECT 1 FROM runs WHERE status IN ('pending', 'running')")


def _resolve(victim: Victim, unknown: set[str], paid: set[str]) -> None:
    for key in sorted(unknown):
        result = CliRunner().invoke(
            main,
            [
                *("effects", "resolve", key),
                "--happened",
                "yes" if key in paid else "no",
                *("--database-url", databases.url(victim.database)),
            ],
        )
        assert result.exit_code == 0, result.output
