"""A process warns if its Redis is on another host without TLS."""

from pathlib import Path

import pytest

from tests.support.redis import started
from tests.support.served import served


@pytest.mark.usefixtures("each_database")
# A SQLite file has no Redis.
@pytest.mark.only("postgresql")
def test_a_server_warns_once_of_redis_without_tls(tmp_path: Path) -> None:
    with started(tmp_path / "valkey") as valkey:
        # The resolver reads 127.1 as 127.0.0.1, but it is no address in the usual form, so it
        # counts as the name of another host.
        for host, count in (("127.1", 1), ("127.0.0.1", 0)):
            folder = tmp_path / host
            folder.mkdir()
            with served(folder, redis_url=f"redis://{host}:{valkey.port}/0") as server:
                pass
            said = server.log.read_text()
            assert said.count("redis_without_tls") == count, said
