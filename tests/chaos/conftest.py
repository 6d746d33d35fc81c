"""The victim: one launcher for all tests, an empty database for each."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.victim import Victim, write_config
from tests.support import databases

# A line for each request of the clients would hide what the servers say.
logging.getLogger("httpx").setLevel(logging.WARNING)


@pytest.fixture(scope="session")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Victim]]:
    """The victim on the database that tests run on now; one for all of them."""
    victims: dict[str, Victim] = {}

    def victim() -> Victim:
        if databases.kind() not in victims:
            victims[databases.kind()] = _launch(tmp_path_factory.mktemp("chaos"))
        return victims[databases.kind()]

    try:
        yield victim
    finally:
        for each in victims.values():
            each.close()


def _launch(folder: Path) -> Victim:
    return Victim(
        folder,
        {
            "LANGGRAPH_JSON": str(write_config(folder)),
            "DATABASE_URL": databases.url(folder / "chaos.db"),
            "SHUTDOWN_GRACE_SECONDS": "0",
            "ALLOW_PRIVATE_WEBHOOKS": "true",
            "CRON_SCHEDULER_SLEEP_TIME": "1",
        },
    )


@pytest.fixture
def victim(launched: Callable[[], Victim]) -> Iterator[Victim]:
    """A server that has not been started, on an empty database."""
    found = launched()
    found.erase()
    yield found
    found.stop()
