"""The victim: one launcher for all tests, an empty database for each."""

import logging
from collections.abc import Iterator

import pytest

from tests.chaos.victim import Victim, write_config

# A line for each request of the clients would hide what the servers say.
logging.getLogger("httpx").setLevel(logging.WARNING)


@pytest.fixture(scope="session")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("chaos")
    victim = Victim(
        folder,
        {
            "LANGGRAPH_JSON": str(write_config(folder)),
            "DATABASE_URL": f"sqlite:///{folder}/chaos.db",
            "SHUTDOWN_GRACE_SECONDS": "0",
            "ALLOW_PRIVATE_WEBHOOKS": "true",
            "CRON_SCHEDULER_SLEEP_TIME": "1",
        },
    )
    try:
        yield victim
    finally:
        victim.close()


@pytest.fixture
def victim(launched: Victim) -> Iterator[Victim]:
    """A server that has not been started, on an empty database."""
    launched.erase()
    yield launched
    launched.stop()
