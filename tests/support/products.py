"""The graphs' own database, for tests that run them without a server."""

from collections.abc import Iterator

import pytest

from my_agent import database


@pytest.fixture(scope="module")
def product_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database of this module's own, which is the one in use."""
    url = f"sqlite:///{tmp_path_factory.mktemp('products')}/data.db"
    database.use(url)
    yield url
    database.database().close()
    database.use(None)
