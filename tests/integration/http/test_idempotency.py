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
def redis(each_database: str, request: pytest.FixtureRequest) -> str | None:
    """Give the Redis that several processes need."""
    return None if each_database == "sqlite" else str(request.getfixturevalue("redis_url"))


@pytest.fixture(scope="module")
def url(data: Path, redis: str | None) -> Iterator[str]:
    project = {
        "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
        "auth": {"path": f"{GRAPHS}/tenant_auth.py:auth"},
        "sql": {"tenant_key": "org"},
    }
    file = data.parent / "langgraph.json"
    file.write_text(json.dumps(project))
    with served(data.parent, file, redis_url=redis) as server:
        yield server.url


@pytest.fixture
def api(url: str) -> Iterator[httpx.Client]:
    headers = {"x-user": "ada", "x-tenant": secrets.token_hex(4)}
    with httpx.Client(base_url=url, timeout=60, headers=headers) as client:
        yield client


@pytest.fixture(scope="module")
def second(url: str, data: Path, redis: str | None) -> Iterator[str]:
    """Give the address of another process on the database; on SQLite there is only one."""
    if redis is None:
        yield url
        return
    with served(data.parent, data.parent / "langgraph.json", redis_url=redis) as server:
        yield server.url


@pytest.fixture
def other(second: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=second, timeout=60, headers={"x-user": "ada"}) as client:
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


@pytest.mark.parametrize("prefix", ["/runs", "/threads/{thread}/runs"])
@pytest.mark.parametrize("end", ["", "/stream", "/wait"])
def test_repetition_in_another_process_starts_no_second_run(
    api: httpx.Client, other: httpx.Client, prefix: str, end: str
) -> None:
    thread, header = api.post("/threads", json={}).json()["thread_id"], key()
    other.headers["x-tenant"] = api.headers["x-tenant"]
    path = prefix.format(thread=thread) + end
    body = {**RUN, "stream_resumable": True}
    if prefix == "/runs":
        body["on_completion"] = "keep"

    def post(client: httpx.Client) -> httpx.Response:
        return client.post(path, json=body, headers=header)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(post, (api, other)))
    answers.append(post(other))
    assert [answer.status_code for answer in answers] == [200] * 3, [a.text for a in answers]
    again = sorted(answer.headers.get("idempotent-replayed", "") for answer in answers)
    assert again == ["", "true", "true"]
    runs = [
        run
        for found in api.post("/threads/search", json={}).json()
        for run in runs_of(api, found["thread_id"])
    ]
    assert len(runs) == 1
    if end == "":
        assert {answer.json()["run_id"] for answer in answers} == {runs[0]["run_id"]}
    elif end == "/wait":
        assert [answer.json()["value"] for answer in answers] == [answers[0].json()["value"]] * 3
    else:
        # The same events with the same ids, from the first.
        assert len({"".join(_events(answer)) for answer in answers}) == 1
        assert runs[0]["run_id"] in answers[0].text


def _events(answer: httpx.Response) -> list[str]:
    """Return the ids and data of a stream."""
    return [line for line in answer.text.splitlines() if line.startswith(("event:", "data:"))]


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


@pytest.mark.parametrize("name", ["", "x" * 256, "x" * 10_000])
def test_empty_or_long_key_is_422(api: httpx.Client, name: str) -> None:
    answer = api.post("/threads", json={}, headers={"idempotency-key": name})
    assert (answer.status_code, "1 to 255" in answer.json()["detail"]) == (422, True)


def test_two_keys_of_a_request_are_422(api: httpx.Client) -> None:
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    assert api.post("/threads", json={}, headers=headers).status_code == 422


def test_key_may_be_any_characters(api: httpx.Client) -> None:
    header = {"idempotency-key": "clé-\u20ac 钥匙 " + secrets.token_hex(4)}
    raw = {name.encode(): value.encode() for name, value in header.items()}
    first, again = (api.post("/threads", json={}, headers=raw).json() for _ in range(2))
    assert first["thread_id"] == again["thread_id"]


def test_repeated_copy_is_the_first_copy(api: httpx.Client) -> None:
    thread, header = api.post("/threads", json={}).json()["thread_id"], key()
    answers = [api.post(f"/threads/{thread}/copy", headers=header) for _ in range(2)]
    assert len({answer.json()["thread_id"] for answer in answers}) == 1
    assert len(api.post("/threads/search", json={}).json()) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/assistants",
        "/runs/batch",
        "/runs/crons",
        "/threads/{thread}/runs/crons",
        "/threads/{thread}/state",
        "/threads/{thread}/commands",
        "/mcp",
        "/mcp/",
        "/a2a/{assistant}",
        "/a2a/{assistant}/",
    ],
)
def test_route_that_would_act_again_refuses_a_key(api: httpx.Client, path: str) -> None:
    thread = api.post("/threads", json={}).json()["thread_id"]
    assistant = api.post("/assistants/search", json={}).json()[0]["assistant_id"]
    path = path.format(thread=thread, assistant=assistant)
    answer = api.post(path, json={}, headers=key(), follow_redirects=True)
    assert (answer.status_code, "Idempotency-Key" in answer.json()["detail"]) == (422, True)


def test_search_ignores_a_key(api: httpx.Client) -> None:
    """Some clients send one with each POST."""
    assert api.post("/threads/search", json={}, headers=key()).status_code == 200
