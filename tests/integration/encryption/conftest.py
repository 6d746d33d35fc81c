"""Fixtures of encrypted databases, in the test's process."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.encryption import keys
from langgraph_runtime_sql.tenancy import scope
from tests.support import runtime
from tests.support.encrypted import FIRST, SetKeys
from tests.support.runtime import set_options


@pytest.fixture(scope="module")
def settings(each_database: str) -> Iterator[None]:
    with runtime.serving("echo"):
        yield


@pytest.fixture
def use(settings: None, monkeypatch: pytest.MonkeyPatch) -> SetKeys:
    """Return the function that configures the master key and the old ones, as a restart does."""
    from langgraph_api import config

    def use(key: bytes | None, *old: bytes) -> None:
        monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", key)
        texts = [each.decode() for each in old]
        set_options(monkeypatch, tenant_key="tenant_id", old_aes_keys=texts)
        keys._of_databases.clear()

    use(FIRST)
    return use


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.db"


@pytest.fixture
async def db(path: Path, use: SetKeys) -> AsyncIterator[Database]:
    with scope.within(scope.EVERYTHING):
        async with runtime.opened(path) as opened:
            await runtime.register(["echo"])
            yield opened
