"""The database of the graphs' own tables, for tests that run graphs without a server."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from my_agent.tables import tables
from tests.support import databases
from threadhold.tables import Engine

_engines: dict[str, Engine] = {}
_urls: list[str] = []


@contextmanager
def using(url: str) -> Iterator[str]:
    """Let the graphs use this database until the end of the block."""
    tables.use(url)
    _urls.append(url)
    try:
        yield url
    finally:
        if (opened := _engines.pop(url, None)) is not None:
            opened.close()
        tables.close()
        _urls.pop()
        tables.use(_urls[-1] if _urls else None)


def engine() -> Engine:
    """Return an engine on the database that the graphs use."""
    url = _urls[-1]
    if url not in _engines:
        _engines[url] = tables.open(url)
    return _engines[url]


@pytest.fixture(scope="session")
def empty_product_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a file with empty tables once; copies are faster than migrations."""
    file = tmp_path_factory.mktemp("empty") / "app.db"
    tables.open(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def own_product_file(tmp_path: Path, empty_product_file: Path) -> Iterator[str]:
    """Let the graphs use a new SQLite file for each test, and give its URL."""
    shutil.copy(empty_product_file, tmp_path / "app.db")
    with using(f"sqlite:///{tmp_path}/app.db") as url:
        yield url


@pytest.fixture(scope="module")
def product_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Let the graphs use a new SQLite file for each module, and give its URL."""
    with using(f"sqlite:///{tmp_path_factory.mktemp('products')}/data.db") as url:
        yield url


@pytest.fixture(scope="module")
def product_database(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Let the graphs use a new database of each kind for each module, and give its URL."""
    with using(databases.url(tmp_path_factory.mktemp("products") / "data.db")) as url:
        yield url
