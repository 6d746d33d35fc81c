"""Each scenario once: both servers must answer alike, but for the listed differences."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from . import scenarios  # noqa: F401  (importing it registers the scenarios)
from .differences import DIFFERENCES, listed
from .normalise import compare, path_matches
from .registry import SCENARIOS
from .runner import Runner


# The first test waits for both servers to start, the last for everything else to be played.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_answers_like_stock(name: str, played: Runner) -> None:
    stock, peer = played.outcomes(name)
    broken = [f"{o.server} broke:\n{o.broke}" for o in (stock, peer) if o.broke]
    assert not broken, "\n".join(broken)
    found = compare(stock.seen, peer.seen)
    allowed = [] if os.environ.get("CONFORMANCE_PEER") == "stock" else listed(name)
    surprises = [
        place for place in found if not any(path_matches(place[0], d.path) for d in allowed)
    ]
    assert not surprises, _report(surprises, stock.seen, peer.seen)
    gone = [d for d in allowed if not any(path_matches(path, d.path) for path, _, _ in found)]
    assert not gone, f"these listed differences no longer occur: {gone}"


def test_every_listed_difference_names_a_scenario() -> None:
    assert {d.scenario for d in DIFFERENCES} <= set(SCENARIOS)


def _report(places: list[tuple[str, Any, Any]], stock: Any, peer: Any) -> str:
    lines = [
        f"{path}\n    stock: {_short(a)}\n    peer:  {_short(b)}" for path, a, b in places[:20]
    ]
    whole = f"\nstock saw: {_short(stock, 3000)}\npeer saw:  {_short(peer, 3000)}"
    return f"{len(places)} differences\n" + "\n".join(lines) + whole


def _short(value: Any, length: int = 400) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= length else f"{text[:length]}..."
