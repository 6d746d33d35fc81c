"""Fixtures: the servers for the whole session, and the runner that plays on them.

``CONFORMANCE_PEER=stock`` compares stock with itself, which checks the harness:
a scenario that is not deterministic, or a normaliser that forgets something, fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .registry import SCENARIOS
from .runner import Runner
from .servers import GRAPHS_CONFIG, our_server, stock_server, wait_ready

PEERS = {"ours": our_server, "stock": stock_server}
OWNERS = Path(__file__).with_name("owners_auth.py")


@pytest.fixture(scope="session")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """A runner that is already playing the scenarios selected for this session."""
    peer = os.environ.get("CONFORMANCE_PEER", "ours")
    items = [item for item in request.session.items if hasattr(item, "callspec")]
    names = {item.callspec.params.get("name") for item in items}
    chosen = [scenario for name, scenario in SCENARIOS.items() if name in names]
    with ExitStack() as stack:
        pairs = {}
        for owners in sorted({scenario.owners for scenario in chosen}):
            auth = OWNERS if owners else None
            first = stock_server(tmp_path_factory.mktemp("stock"), "stock", auth)
            second = PEERS[peer](tmp_path_factory.mktemp(peer), f"peer ({peer})", auth)
            pairs[owners] = (stack.enter_context(first), stack.enter_context(second))
        for server in [server for pair in pairs.values() for server in pair]:
            wait_ready(server)
        runner = Runner(pairs, sorted(json.loads(GRAPHS_CONFIG.read_text())["graphs"]))
        runner.start(chosen)
        yield runner
        runner.join()
