"""Each scenario once: our answers must equal stock's, except for the listed differences."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support import databases

from . import scenarios  # noqa: F401  (importing it registers the scenarios)
from .differences import DIFFERENCES
from .normalise import compare
from .registry import SCENARIOS
from .runner import REFERENCE, Runner

STOCK_WITH_ITSELF = os.environ.get("CONFORMANCE_PEER") == "stock"
PEERS = ["stock again"] if STOCK_WITH_ITSELF else list(databases.KINDS)


# The first test waits for the servers to start, the last one for all other scenarios.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
@pytest.mark.parametrize("peer", PEERS)
def test_answers_like_stock(peer: str, name: str, played: Runner) -> None:
    outcomes = played.outcomes(name)
    stock, ours = outcomes[REFERENCE], outcomes[peer]
    broken = [f"{o.server} broke:\n{o.broke}" for o in (stock, ours) if o.broke]
    assert not broken, "\n".join(broken)
    allowed = [] if STOCK_WITH_ITSELF else DIFFERENCES
    surprises = [
        place
        for place in compare(stock.seen, ours.seen)
        if not any(difference.covers(name, place[0]) for difference in allowed)
    ]
    assert not surprises, _report(surprises, stock.seen, ours.seen)


@pytest.mark.parametrize("peer", PEERS)
def test_every_listed_difference_occurs(peer: str, played: Runner) -> None:
    """Check only entries whose scenarios were all played in this session."""
    found = {
        name: [path for path, _, _ in compare(outcomes[REFERENCE].seen, outcomes[peer].seen)]
        for name in played.names
        if (outcomes := played.outcomes(name))
    }
    gone = []
    for difference in [] if STOCK_WITH_ITSELF else DIFFERENCES:
        names = {name for name in SCENARIOS if difference.concerns(name)}
        assert names, f"no scenario is called {difference.scenario}"
        occurs = any(
            difference.covers(name, path) for name in names & played.names for path in found[name]
        )
        if names <= played.names and not occurs:
            gone.append(difference)
    assert not gone, "\n".join(f"{each.scenario} {each.path}" for each in gone)


def _report(places: list[tuple[str, Any, Any]], stock: Any, peer: Any) -> str:
    lines = [
        f"{path}\n    stock: {_short(a)}\n    peer:  {_short(b)}" for path, a, b in places[:20]
    ]
    whole = f"\nstock saw: {_short(stock, 3000)}\npeer saw:  {_short(peer, 3000)}"
    return f"{len(places)} differences\n" + "\n".join(lines) + whole


def _short(value: Any, length: int = 400) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= length else f"{text[:length]}..."
