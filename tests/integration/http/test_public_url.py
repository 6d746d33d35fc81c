"""The docs page loads nothing, and no answer repeats the `Host` of its request."""

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from starlette.responses import RedirectResponse
from starlette.testclient import TestClient

from tests.support.processes import GRAPHS, Running
from tests.support.served import served
from threadhold.http.layers import Layer
from threadhold.http.public_url import relative_redirects

# No database is involved.
pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("sqlite")]

EVIL = {"host": "evil.example"}
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("public")) as started:
        yield started


@pytest.fixture(scope="module")
def production(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("production")
    config = json.loads((GRAPHS / "langgraph.json").read_text())
    config["graphs"] = {"echo": f"{GRAPHS}/echo.py:graph"}
    config["auth"] = {"path": f"{GRAPHS}/auth.py:auth"}
    (folder / "langgraph.json").write_text(json.dumps(config))
    variables = {"APP_ENV": "production", "PUBLIC_URL": "https://agents.example.com/api"}
    with served(folder, folder / "langgraph.json", **variables) as started:
        yield started


def test_docs_page_loads_nothing_and_allows_no_other_script(server: Running) -> None:
    answer = httpx.get(f"{server.url}/docs")
    assert answer.status_code == 200
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!openapi\.json)", answer.text)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for name in ("script", "style"):
        [inline] = re.findall(f"<{name}>(.*?)</{name}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    [spec] = re.findall(r'type="application/json">(.*?)</script>', answer.text, re.DOTALL)
    assert json.loads(spec) == httpx.get(f"{server.url}/openapi.json").json()


def test_production_has_no_docs_page(production: Running) -> None:
    # Every unknown path needs a token.
    assert httpx.get(f"{production.url}/docs").status_code == 401
    assert httpx.get(f"{production.url}/docs", headers={"x-user": "ada"}).status_code == 404
    assert httpx.get(f"{production.url}/openapi.json").status_code == 200


@pytest.mark.parametrize("path", [CARD, "/a2a/{}" + CARD])
def test_agent_card_does_not_repeat_the_host(server: Running, path: str) -> None:
    [assistant] = httpx.post(
        f"{server.url}/assistants/search", json={"graph_id": "echo", "limit": 1}
    ).json()
    name = assistant["assistant_id"]
    url, asked = f"{server.url}{path.format(name)}", {"assistant_id": name}
    for headers in (EVIL, {**EVIL, "x-forwarded-proto": "javascript"}):
        answer = httpx.get(url, params=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        assert "evil" not in answer.text
        assert "javascript" not in answer.text
        assert answer.json()["url"] == f"/a2a/{name}"
    own = httpx.get(url, params=asked).json()
    assert own["url"] == own["supportedInterfaces"][0]["url"] == f"{server.url}/a2a/{name}"


def test_agent_card_names_the_public_url(production: Running) -> None:
    with httpx.Client(base_url=production.url, headers={"x-user": "ada"}) as ada:
        [found] = ada.post("/assistants/search", json={"graph_id": "echo"}).json()
        name = found["assistant_id"]
        for headers in ({}, EVIL):
            card = ada.get(CARD, params={"assistant_id": name}, headers=headers).json()
            assert card["url"] == f"https://agents.example.com/api/a2a/{name}"


def test_redirects_are_relative() -> None:
    async def moved(scope: Any, receive: Any, send: Any) -> None:
        target = scope["query_string"].decode()
        await RedirectResponse(target)(scope, receive, send)

    client = TestClient(Layer(moved, [relative_redirects]), base_url="http://evil.example")
    for target, expected in {
        "http://evil.example/threads/?a=b": "/threads/?a=b",
        "http://evil.example//other.example/x": "/other.example/x",
        "https://login.example/": "https://login.example/",
        "/here": "/here",
    }.items():
        answer = client.get(f"/?{target}", follow_redirects=False)
        assert answer.headers["location"] == expected


def test_answers_to_unknown_paths_do_not_redirect_to_the_host(server: Running) -> None:
    for path in ("/threads/", "//evil.example/", "/docs/"):
        answer = httpx.get(server.url + path, headers=EVIL, follow_redirects=False)
        assert "evil" not in answer.headers.get("location", "").replace("//", "")


def test_v2_stream_of_a_foreign_thread_is_one_log_line(production: Running) -> None:
    thread = str(uuid4())
    with httpx.Client(base_url=production.url, timeout=60) as http:
        http.post("/threads", json={"thread_id": thread}, headers={"x-user": "bob"})
        path, ada = f"/threads/{thread}/stream/events", {"x-user": "ada"}
        deadline = time.monotonic() + 60
        with http.stream("POST", path, json={"channels": ["values"]}, headers=ada) as answer:
            status = answer.status_code
            while status == 200 and "protocol thread stream failed" not in read(production):
                assert time.monotonic() < deadline
                time.sleep(0.05)
    assert "Traceback" not in read(production)
    lines = [json.loads(line) for line in read(production).splitlines()]
    for line in lines:
        if line["event"] == "protocol thread stream failed":
            assert (line["level"], line["status"]) == ("info", 404)


def read(server: Running) -> str:
    return server.log.read_text()
