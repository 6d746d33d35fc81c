"""The database of the graphs' own tables, for tests that run graphs without a server."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from my_agent import database
from tests.support import databases


@contextmanager
def using(url: str) -> Iterator[str]:
    """Let the graphs use this database until the end of the block."""
    database.use(url)
    try:
        yield url
    finally:
        database.close()
        database.use(None)


@pytest.fixture(scope="session")
def empty_product_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a file with empty tables once; copies are faster than migrations."""
    file = tmp_path_factory.mktemp("empty") / "app.db"
    database.ProductDatabase(f"sqlite:///{file}").close()
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
