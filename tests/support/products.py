"""The graphs' own database, for tests that run them without a server."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from my_agent import database
from tests.support import databases


@contextmanager
def using(url: str) -> Iterator[str]:
    """This is the database in use, until the end of the block."""
    database.use(url)
    try:
        yield url
    finally:
        database.close()
        database.use(None)


@pytest.fixture(scope="session")
def empty_product_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with every table and nothing in them, to copy: making one takes a while."""
    file = tmp_path_factory.mktemp("empty") / "app.db"
    database.ProductDatabase(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def own_product_file(tmp_path: Path, empty_product_file: Path) -> Iterator[str]:
    """The URL of a file of this test's own, which is the database in use."""
    shutil.copy(empty_product_file, tmp_path / "app.db")
    with using(f"sqlite:///{tmp_path}/app.db") as url:
        yield url


@pytest.fixture(scope="module")
def product_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a file of this module's own, which is the database in use."""
    with using(f"sqlite:///{tmp_path_factory.mktemp('products')}/data.db") as url:
        yield url


@pytest.fixture(scope="module")
def product_database(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database of this module's own, which is the one in use: of each kind."""
    with using(databases.url(tmp_path_factory.mktemp("products") / "data.db")) as url:
        yield url
