"""Each scenario once: both servers must answer alike, but for the listed differences."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from . import scenarios  # noqa: F401  (importing it registers the scenarios)
from .differences import DIFFERENCES
from .normalise import compare
from .registry import SCENARIOS
from .runner import Runner

STOCK_WITH_ITSELF = os.environ.get("CONFORMANCE_PEER") == "stock"


# The first test waits for both servers to start, the last for everything else to be played.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_answers_like_stock(name: str, played: Runner) -> None:
    stock, peer = played.outcomes(name)
    broken = [f"{o.server} broke:\n{o.broke}" for o in (stock, peer) if o.broke]
    assert not broken, "\n".join(broken)
    allowed = [] if STOCK_WITH_ITSELF else DIFFERENCES
    surprises = [
        place
        for place in compare(stock.seen, peer.seen)
        if not any(difference.covers(name, place[0]) for difference in allowed)
    ]
    assert not surprises, _report(surprises, stock.seen, peer.seen)


def test_every_listed_difference_occurs(played: Runner) -> None:
    """Judged are the entries whose scenarios have all been played in this session."""
    found = {
        name: [path for path, _, _ in compare(*(outcome.seen for outcome in played.outcomes(name)))]
        for name in played.names
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
    assert not gone


def _report(places: list[tuple[str, Any, Any]], stock: Any, peer: Any) -> str:
    lines = [
        f"{path}\n    stock: {_short(a)}\n    peer:  {_short(b)}" for path, a, b in places[:20]
    ]
    whole = f"\nstock saw: {_short(stock, 3000)}\npeer saw:  {_short(peer, 3000)}"
    return f"{len(places)} differences\n" + "\n".join(lines) + whole


def _short(value: Any, length: int = 400) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= length else f"{text[:length]}..."
