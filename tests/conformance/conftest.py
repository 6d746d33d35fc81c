"""Fixtures: both servers for the whole session, and the runner that plays on them.

``CONFORMANCE_PEER=stock`` compares stock with itself, which checks the harness:
a scenario that is not deterministic, or a normaliser that forgets something, fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .registry import SCENARIOS
from .runner import Runner
from .servers import GRAPHS_CONFIG, our_server, stock_server


@pytest.fixture(scope="session")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """A runner that is already playing the scenarios selected for this session."""
    peer = os.environ.get("CONFORMANCE_PEER", "ours")
    start = {"ours": our_server, "stock": stock_server}[peer]
    names = [
        item.callspec.params.get("name")
        for item in request.session.items
        if hasattr(item, "callspec")
    ]
    with ExitStack() as stack:
        first = stack.enter_context(stock_server(tmp_path_factory.mktemp("stock")))
        second = stack.enter_context(start(tmp_path_factory.mktemp(peer), name=f"peer ({peer})"))
        runner = Runner((first, second), sorted(json.loads(GRAPHS_CONFIG.read_text())["graphs"]))
        runner.start(SCENARIOS[name] for name in names if name in SCENARIOS)
        yield runner
        runner.join()
