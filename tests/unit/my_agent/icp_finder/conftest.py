"""Fixtures of the ICP finder's nodes: a database, captured logs, thread metadata and websites."""

from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from my_agent.icp_finder.model import Site
from my_agent.icp_finder.nodes import profile
from my_agent.threads import thread
from my_agent.web.fetch import SiteRefused, SiteUnreadable
from my_agent.web.sites import domain
from tests.support.icp_state import (
    HAULIER,
)


@pytest.fixture(autouse=True)
def product(own_product_file: str, no_model: pytest.MonkeyPatch) -> None:
    for name in ("ICP_RULE_NAME", "RUN_NOW_LIMIT", "RUN_LATER_LIMIT", "PROFILE_STALENESS_DAYS"):
        no_model.delenv(name, raising=False)


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the metadata of the thread by a dictionary that the test can change."""
    found: dict[str, Any] = {}

    async def metadata_of(config: Any) -> dict[str, Any]:
        return found

    monkeypatch.setattr(thread, "metadata", metadata_of)
    return found


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Read websites without a network. The list contains the domains that were read."""
    read: list[str] = []

    async def read_site(website: str) -> Site:
        name = domain(website)
        read.append(name)
        if name.startswith("10."):
            raise SiteRefused(f"{name} is at a private address, which is not read.")
        if name.startswith("down"):
            raise SiteUnreadable(f"{name} could not be read.")
        return {"website": website, "domain": name, "name": name.title(), "about": HAULIER}

    monkeypatch.setattr(profile, "read_site", read_site)
    return read
