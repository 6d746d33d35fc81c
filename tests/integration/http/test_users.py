"""Who asks: a request of a product's route is one request, of a user who is checked once."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.processes import ROOT
from tests.support.served import served

pytestmark = pytest.mark.usefixtures("each_database")

AUTH = """
from pathlib import Path

from langgraph_sdk import Auth

auth = Auth()
CHECKS = Path(__file__).with_name("checks")


@auth.authenticate
async def authenticate(scope):
    with CHECKS.open("a") as file:
        file.write(scope["path"] + "\\n")
    headers = dict(scope["headers"])
    if b"x-user" not in headers:
        raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")
    return {"identity": headers[b"x-user"].decode(), "tenant_id": headers[b"x-tenant"].decode() or None}


@auth.on.threads
async def own(ctx, value):
    owner = {"tenant_id": ctx.user["tenant_id"], "user_id": ctx.user.identity}
    value.setdefault("metadata", {}).update(owner)
    return owner


@auth.on.threads.update
async def change(ctx, value):
    if "action" in value and ctx.user.identity == "bob":
        raise Auth.exceptions.HTTPException(status_code=403, detail="Bob cancels nothing")
    return {"tenant_id": ctx.user["tenant_id"], "user_id": ctx.user.identity}
"""
QUESTION = {"question": "What does Skarra cost?", "limits": {"fetches": 0}}


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("users")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """Serve the research without a worker, so that its runs stay in the queue."""
    (folder / "own_auth.py").write_text(AUTH)
    project = {
        "graphs": {"research": f"{ROOT}/my_agent/research/graph.py:graph"},
        "auth": {"path": "./own_auth.py:auth"},
        "sql": {
            "tenant_key": "tenant_id",
            "limits": {"tenants": {"few": {"requests_per_second": 3}}},
        },
    }
    (folder / "langgraph.json").write_text(json.dumps(project))
    env = {"N_JOBS_PER_WORKER": "0", "RESEARCH_DATA_FOLDER": str(folder / "task-data")}
    with served(folder, folder / "langgraph.json", **env) as server:
        yield server.url


def client(url: str, user: str = "ada", tenant: str = "acme") -> httpx.Client:
    return httpx.Client(base_url=url, timeout=60, headers={"x-user": user, "x-tenant": tenant})


def started(http: httpx.Client) -> str:
    answer = http.post("/research", json=QUESTION)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["project_id"])


def test_refused_cancel_says_so_and_shows_what_goes_on(url: str) -> None:
    with client(url, "bob") as bob:
        project = started(bob)
        answer = bob.post(f"/research/{project}/cancel")
        assert answer.status_code == 403, answer.text
        assert answer.json()["detail"] == "Bob cancels nothing"
        assert answer.json()["status"] == "queued"
        assert bob.get(f"/research/{project}/progress").json()["status"] == "queued"
        [run] = bob.get(f"/threads/{project}/runs").json()
        assert run["status"] == "pending"
    with client(url) as ada:
        project = started(ada)
        answer = ada.post(f"/research/{project}/cancel")
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
        [run] = ada.get(f"/threads/{project}/runs").json()
        assert run["status"] == "interrupted"


def test_limits_count_a_request_once(url: str) -> None:
    with client(url, tenant="calm") as http:
        project = started(http)
    with client(url, tenant="few") as http:
        path = f"/research/{project}/progress"
        assert [http.get(path).status_code for _ in range(4)] == [404, 404, 404, 429]


def test_request_checks_its_token_once(url: str, folder: Path) -> None:
    with client(url) as http:
        project = started(http)
        checks = folder / "checks"
        for method, what in (("GET", "progress"), ("GET", "state"), ("POST", "pause")):
            checks.write_text("")
            answer = http.request(method, f"/research/{project}/{what}")
            assert answer.is_success, answer.text
            assert checks.read_text().splitlines() == [f"/research/{project}/{what}"]
        checks.write_text("")
        assert http.delete(f"/threads/{project}").status_code == 204
        assert checks.read_text().splitlines() == [f"/threads/{project}"]
    checks.write_text("")
    assert httpx.get(f"{url}/research/{project}/progress").status_code == 401
    assert len(checks.read_text().splitlines()) == 1


def test_user_of_another_authentication_needs_a_tenant(url: str) -> None:
    with client(url, tenant="") as http:
        answer = http.post("/research", json=QUESTION)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


def test_caller_is_told_who_it_is_and_nothing_else(url: str) -> None:
    headers = {"x-user": "ada", "x-tenant": "acme"}
    found = httpx.get(f"{url}/me", headers=headers)
    assert found.json() == {
        "identity": "ada",
        "display_name": "ada",
        "tenant": "acme",
        "permissions": [],
    }
    assert found.headers["cache-control"] == "no-store"
    assert httpx.get(f"{url}/me").status_code == 401
