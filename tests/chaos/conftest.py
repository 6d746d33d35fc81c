"""The chaos server: one launcher for all tests, and an empty database for each."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.victim import Victim, write_config
from tests.support import databases

# A log line for each client request would hide the logs of the servers.
logging.getLogger("httpx").setLevel(logging.WARNING)


# A secret of the Standard Webhooks scheme.
WEBHOOK_SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture(scope="session")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Victim]]:
    """Return a function that gives the server for the current kind of database."""
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
            "WEBHOOK_SECRETS": WEBHOOK_SECRET,
            "CRON_SCHEDULER_SLEEP_TIME": "1",
        },
    )


@pytest.fixture
def victim(launched: Callable[[], Victim]) -> Iterator[Victim]:
    """Give a server that is not started, on an empty database."""
    found = launched()
    found.erase()
    yield found
    found.stop()
