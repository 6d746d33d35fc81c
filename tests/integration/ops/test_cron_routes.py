"""Crons through a server's routes: what the stock handlers cannot take, and that they survive."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS, environment, free_port, running, threadhold

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def api(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder, port = tmp_path_factory.mktemp("crons"), free_port()
    command = threadhold("serve", "--port", str(port), "--config", GRAPHS / "langgraph.json")
    command += ["--database-url", databases.url(folder / "crons.db")]
    with (
        running(command, port, folder, environment()) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


BODY: dict[str, Any] = {"assistant_id": "echo", "schedule": "0 0 1 1 *"}


@pytest.mark.parametrize(
    "timezone", ["America", "x" * 300, "../../etc/passwd", "a\x00b", "", "Atlantis/Capital", 7]
)
def test_a_time_zone_that_is_none(api: httpx.Client, timezone: Any) -> None:
    """A folder of the zone database and a name too long for a file were a 500."""
    created = api.post("/runs/crons", json=BODY).json()
    thread = api.post("/threads", json={}).json()
    body = {**BODY, "timezone": timezone}
    for answer in (
        api.post("/runs/crons", json=body),
        api.post(f"/threads/{thread['thread_id']}/runs/crons", json=body),
        api.patch(f"/runs/crons/{created['cron_id']}", json={"timezone": timezone}),
    ):
        assert answer.status_code == 422, answer.text
    assert api.get(f"/runs/crons/{created['cron_id']}").json() == created
    assert api.delete(f"/runs/crons/{created['cron_id']}").status_code == 204


@pytest.mark.parametrize(
    "path", ["/assistants/search", "/runs/crons/search", "/assistants/{assistant}/versions"]
)
@pytest.mark.parametrize("offset", [2**63, 10**30])
def test_an_offset_that_no_column_holds(api: httpx.Client, path: str, offset: int) -> None:
    assistant = api.post("/assistants/search", json={"limit": 1}).json()[0]["assistant_id"]
    answer = api.post(path.format(assistant=assistant), json={"offset": offset})
    assert answer.status_code in (400, 422) and answer.json()["detail"]
