"""The graphs' own database, for tests that run them without a server."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from my_agent import database


@pytest.fixture(scope="session")
def empty_product_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with every table and nothing in them, to copy: making one takes a while."""
    file = tmp_path_factory.mktemp("empty") / "app.db"
    database.ProductDatabase(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def own_product_database(tmp_path: Path, empty_product_database: Path) -> Iterator[str]:
    """The URL of a database of this test's own, which is the one in use."""
    shutil.copy(empty_product_database, tmp_path / "app.db")
    url = f"sqlite:///{tmp_path}/app.db"
    database.use(url)
    yield url
    database.close()
    database.use(None)


@pytest.fixture(scope="module")
def product_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database of this module's own, which is the one in use."""
    url = f"sqlite:///{tmp_path_factory.mktemp('products')}/data.db"
    database.use(url)
    yield url
    database.close()
    database.use(None)
