"""Fixtures: the servers of the whole session, and the runner that plays scenarios on them.

``CONFORMANCE_PEER=stock`` compares stock with itself, which checks the harness:
a scenario that is not deterministic, or an incomplete normaliser, fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.support import databases

from .registry import SCENARIOS
from .runner import REFERENCE, Runner
from .servers import Server, our_server, served, stock_server, wait_ready

OWNERS = Path(__file__).with_name("owners_auth.py")


@pytest.fixture(scope="session")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """Start the servers and play the scenarios that this session selected."""
    # Other folders may use parameters of the same names.
    here = [item for item in request.session.items if item.path.parent == Path(__file__).parent]
    items = [item for item in here if hasattr(item, "callspec")]
    names = {item.callspec.params.get("name") for item in items}
    peers = sorted({item.callspec.params.get("peer") for item in items} - {None})
    chosen = [scenario for name, scenario in SCENARIOS.items() if name in names]
    with ExitStack() as stack:
        servers: dict[bool, dict[str, Server]] = {}
        for owners in sorted({scenario.owners for scenario in chosen}):
            servers[owners] = {
                name: stack.enter_context(_server(tmp_path_factory, name, owners))
                for name in (REFERENCE, *peers)
            }
        for server in [each for started in servers.values() for each in started.values()]:
            wait_ready(server)
        runner = Runner(servers, sorted(served()))
        runner.start(chosen)
        yield runner
        runner.join()


def _server(
    folders: pytest.TempPathFactory, name: str, owners: bool
) -> AbstractContextManager[Server]:
    """Start the server on the database of this name, or stock."""
    auth = OWNERS if owners else None
    if name not in databases.KINDS:
        return stock_server(folders.mktemp("stock"), name, auth)
    with databases.on(name):
        url = databases.url(folders.mktemp(name) / "conformance.db")
    return our_server(folders.mktemp(name), name, url, auth)
