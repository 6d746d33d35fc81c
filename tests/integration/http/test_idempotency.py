"""`Idempotency-Key`: a repeated creation creates nothing, for the same user of the same tenant."""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.processes import GRAPHS
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def data(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("idempotency") / "data.db"


@pytest.fixture(scope="module")
def url(data: Path) -> Iterator[str]:
    project = {
        "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org"},
    }
    file = data.parent / "langgraph.json"
    file.write_text(json.dumps(project))
    with served(data.parent, file) as server:
        yield server.url


@pytest.fixture
def api(url: str) -> Iterator[httpx.Client]:
    headers = {"x-user": "ada", "x-tenant": secrets.token_hex(4)}
    with httpx.Client(base_url=url, timeout=60, headers=headers) as client:
        yield client


def key() -> dict[str, str]:
    return {"idempotency-key": secrets.token_hex(8)}


RUN: dict[str, Any] = {"assistant_id": "echo", "input": {"value": 1}}


def runs_of(api: httpx.Client, thread: str) -> list[Any]:
    found: list[Any] = api.get(f"/threads/{thread}/runs").json()
    return found


def test_repeated_thread_is_the_first_thread(api: httpx.Client) -> None:
    header = key()
    first, again = (api.post("/threads", json={}, headers=header) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["thread_id"] == first.json()["thread_id"]
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert len(api.post("/threads/search", json={}).json()) == 1


def test_concurrent_repetitions_create_one_run(api: httpx.Client) -> None:
    thread, header = api.post("/threads", json={}).json()["thread_id"], key()

    def post(_: int) -> httpx.Response:
        body = {**RUN, "multitask_strategy": "enqueue"}
        return api.post(f"/threads/{thread}/runs", json=body, headers=header)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(post, range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    assert len(runs_of(api, thread)) == 1


@pytest.mark.parametrize("end", ["stream", "wait"])
def test_repeated_stream_is_409_and_names_the_run(api: httpx.Client, end: str) -> None:
    thread, header = api.post("/threads", json={}).json()["thread_id"], key()
    path = f"/threads/{thread}/runs/{end}"
    assert api.post(path, json=RUN, headers=header).status_code == 200
    again = api.post(path, json=RUN, headers=header)
    [run] = runs_of(api, thread)
    assert again.status_code == 409
    assert run["run_id"] in again.json()["detail"]


def test_same_key_with_another_body_is_422(api: httpx.Client) -> None:
    header = key()
    api.post("/threads", json={}, headers=header)
    other = api.post("/threads", json={"metadata": {"a": 1}}, headers=header)
    assert other.status_code == 422
    assert "new key" in other.json()["detail"]
    assert len(api.post("/threads/search", json={}).json()) == 1


def test_key_of_another_tenant_or_user_is_another_key(api: httpx.Client) -> None:
    header = key()
    answers = [
        api.post("/threads", json={}, headers={**header, **more})
        for more in ({}, {"x-tenant": secrets.token_hex(4)}, {"x-user": "bob"})
    ]
    assert len({answer.json()["thread_id"] for answer in answers}) == 3


def test_refused_request_does_not_use_its_key(api: httpx.Client) -> None:
    header, thread = key(), "8c9f0f6e-0000-4000-8000-" + secrets.token_hex(6)
    path = f"/threads/{thread}/runs"
    assert api.post(path, json=RUN, headers=header).status_code == 404
    api.post("/threads", json={"thread_id": thread})
    assert api.post(path, json=RUN, headers=header).status_code == 200


def test_deleted_thread_is_not_created_again(api: httpx.Client) -> None:
    header = key()
    thread = api.post("/threads", json={}, headers=header).json()["thread_id"]
    api.delete(f"/threads/{thread}")
    again = api.post("/threads", json={}, headers=header)
    assert (again.status_code, "gone" in again.json()["detail"]) == (409, True)


def test_key_ends_after_a_day(api: httpx.Client, data: Path) -> None:
    header = key()
    first = api.post("/threads", json={}, headers=header).json()["thread_id"]
    before = databases.date(0)
    databases.execute(data, "UPDATE idempotency_keys SET created_at = ?", before)
    again = api.post("/threads", json={}, headers=header)
    assert again.status_code == 200
    assert again.json()["thread_id"] != first


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_empty_or_long_key_is_422(api: httpx.Client, name: str) -> None:
    assert api.post("/threads", json={}, headers={"idempotency-key": name}).status_code == 422
