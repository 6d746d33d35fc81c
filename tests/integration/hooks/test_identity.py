"""Authentication of a served app: an issuer's keys, environments, foreign pages, and refusals."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.support import databases
from tests.support.issuer import SECRET, Published, bearer, public_jwk, published, token
from tests.support.processes import (
    GRAPHS,
    ROOT,
    Running,
    environment,
    free_port,
    library,
    ran,
    threadhold,
)
from tests.support.served import served

REFUSAL = {"detail": "A valid bearer token is needed"}
INTERVAL = 2.0


def project(folder: Path, auth: str = "hooks.auth:auth") -> Path:
    """Write a project with one graph and authentication."""
    config = {"graphs": {"echo": f"{GRAPHS}/echo.py:graph"}, "auth": {"path": auth}}
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path


def asked(server: Running, sent: str | None = None, **headers: str) -> httpx.Response:
    """Search threads with a token or without. Return the answer."""
    headers = {**headers, **({} if sent is None else bearer(sent))}
    return httpx.post(f"{server.url}/threads/search", json={}, headers=headers, timeout=60)


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a `threadhold` command to its end."""
    return ran(threadhold(*arguments), folder, environment(**env))


# --- an issuer's keys -------------------------------------------------------


@pytest.fixture(scope="module")
def jwks() -> Iterator[Published]:
    with published(public_jwk("RS256", "first"), public_jwk("EdDSA", "ed")) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def behind(
    each_database: str, jwks: Published, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A server that is configured with the address of the issuer's keys."""
    folder = tmp_path_factory.mktemp("jwks")
    env = {
        "APP_ENV": "production",
        "JWT_JWKS_URL": jwks.url,
        "JWT_JWKS_INTERVAL_SECONDS": str(INTERVAL),
        "JWT_ISSUER": "https://issuer.example",
        "JWT_AUDIENCE": "threadhold",
    }
    with served(folder, project(folder), **env) as server:
        yield server


def issued(algorithm: str, kid: str, **changes: Any) -> str:
    said = {"iss": "https://issuer.example", "aud": "threadhold", **changes}
    return token(algorithm, kid, **said)


def test_only_valid_tokens_of_the_issuer_are_accepted(behind: Running, jwks: Published) -> None:
    assert asked(behind, issued("RS256", "first")).status_code == 200
    assert asked(behind, issued("EdDSA", "ed")).status_code == 200
    for wrong in (
        issued("RS256", "first", aud="another"),
        issued("RS256", "first", iss="https://evil.example"),
        issued("RS256", "first", exp=1),
        issued("EdDSA", "first"),
        issued("HS256", "first"),
        token(),
    ):
        answer = asked(behind, wrong)
        assert (answer.status_code, answer.json()) == (401, REFUSAL)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_new_issuer_keys_are_accepted_without_a_restart(behind: Running, jwks: Published) -> None:
    assert asked(behind, issued("RS256", "first")).status_code == 200
    jwks.keys.append(public_jwk("ES256", "second"))
    deadline = time.monotonic() + 60
    while asked(behind, issued("ES256", "second")).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert asked(behind, issued("RS256", "first")).status_code == 200


def test_unknown_keys_cause_no_flood_of_requests_to_the_issuer(
    behind: Running, jwks: Published
) -> None:
    """CVE-2026-48524, GHSA-fhv5-28vv-h8m8."""
    first, started = jwks.asked, time.monotonic()
    sent = issued("RS256", "unknown")
    with httpx.Client(base_url=behind.url, headers=bearer(sent), timeout=60) as client:
        for _ in range(300):
            assert client.post("/threads/search", json={}).status_code == 401
    passed = time.monotonic() - started
    # One more at each end: a request from before may arrive only now.
    assert jwks.asked - first <= passed / INTERVAL + 2


def test_known_keys_are_accepted_while_the_issuer_is_down(behind: Running, jwks: Published) -> None:
    assert asked(behind, issued("RS256", "first")).status_code == 200
    jwks.status = 503
    try:
        assert asked(behind, issued("RS256", "unheard of")).status_code == 401
        assert asked(behind, issued("RS256", "first")).status_code == 200
    finally:
        jwks.status = 200


def test_server_starts_while_its_issuer_is_down(tmp_path: Path) -> None:
    """The server accepts tokens as soon as the issuer answers."""
    with published() as issuer:
        issuer.status = 503
        env = {"APP_ENV": "production", "JWT_JWKS_URL": issuer.url}
        env["JWT_JWKS_INTERVAL_SECONDS"] = "0.05"
        with served(tmp_path, project(tmp_path), **env) as server:
            assert asked(server, token("ES256", "late")).status_code == 401
            issuer.status = 200
            issuer.keys.append(public_jwk("ES256", "late"))
            deadline = time.monotonic() + 60
            while asked(server, token("ES256", "late")).status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.05)


# --- environments -----------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "secret"), [("staging", {}), ("production", {"JWT_SECRET": ""})], ids=str
)
def test_server_does_not_start_without_a_key(
    tmp_path: Path, env: str, secret: dict[str, str]
) -> None:
    ended = run(tmp_path, "serve", "--config", str(ROOT / "langgraph.json"), APP_ENV=env, **secret)
    assert ended.returncode == 1
    assert f"Error: APP_ENV={env} needs a key to verify tokens with" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"JWT_SECRET": json.dumps(public_jwk("RS256"))}, "JWT_SECRET: is a public key"),
        ({"JWT_JWKS_FILE": "nowhere.json"}, "JWT_JWKS_FILE=nowhere.json: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_key_is_refused_at_start(tmp_path: Path, env: dict[str, str], said: str) -> None:
    line = ["serve", "--config", str(ROOT / "langgraph.json")]
    ended = run(tmp_path, *line, APP_ENV="production", **env)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert env.get("JWT_SECRET", "no secret at all") not in ended.stderr


@pytest.fixture(scope="module")
def local(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("local")
    (folder / ".env").write_text(f"JWT_SECRET={SECRET}\nCORS_ALLOW_ORIGINS=https://app.example\n")
    # LangGraph projects name their own file by its path, as here.
    with served(folder, project(folder, f"{ROOT}/hooks/auth.py:auth")) as server:
        yield server


def test_local_request_without_token_acts_for_the_developer(local: Running) -> None:
    made = httpx.post(f"{local.url}/threads", json={}).json()
    assert made["metadata"] == {"tenant_id": "local", "user_id": "developer"}
    assert httpx.get(f"{local.url}/metrics").status_code == 200
    mine = bearer(token())
    assert httpx.get(f"{local.url}/threads/{made['thread_id']}", headers=mine).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        bearer("x"),
        bearer(token(exp=1)),
        {"authorization": ""},
        {"authorization": "Basic YTpi"},
        {"host": "evil.example"},
        {"host": "evil.example:8123", "origin": "http://evil.example:8123"},
        {"x-forwarded-for": "203.0.113.7"},
    ],
    ids=[
        *("no token", "expired", "empty", "basic", "another host", "another origin"),
        "forwarded",
    ],
)
def test_local_server_refuses_invalid_tokens_and_foreign_hosts(
    local: Running, headers: dict[str, str]
) -> None:
    answer = httpx.post(f"{local.url}/threads/search", json={}, headers=headers)
    assert (answer.status_code, answer.json()) == (401, REFUSAL)


def test_settings_of_a_dotenv_file_configure_authentication(local: Running) -> None:
    assert asked(local, token()).status_code == 200


def test_refusal_of_a_listed_origin_carries_cors_headers(local: Running) -> None:
    """Without these headers a browser would show it a network error."""
    origin = {"origin": "https://app.example"}
    refused = asked(local, "x", **origin)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == origin["origin"]
    wanted = {**origin, "access-control-request-method": "POST"}
    wanted["access-control-request-headers"] = "authorization"
    preflight = httpx.options(f"{local.url}/threads/search", headers=wanted)
    assert preflight.status_code == 200, "a preflight request carries no token"
    assert "authorization" in preflight.headers["access-control-allow-headers"].lower()


def count_threads(server: Running) -> int:
    return int(httpx.post(f"{server.url}/threads/count", json={}).text)


@pytest.mark.parametrize("path", ["/threads", "/runs/wait", "/store/items"])
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://["]
)
def test_local_server_refuses_writes_of_foreign_pages(
    local: Running, path: str, origin: str
) -> None:
    """A browser sends plain text to any origin without a preflight request."""
    before = count_threads(local)
    body = {"assistant_id": "echo", "input": {}, "namespace": ["a"], "key": "a", "value": {}}
    method = "PUT" if path.startswith("/store") else "POST"
    headers = {"origin": origin, "content-type": "text/plain"}
    answer = httpx.request(method, local.url + path, content=json.dumps(body), headers=headers)
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith(f"Pages of {origin} may not write here")
    assert count_threads(local) == before


@pytest.mark.parametrize("name", ["own", "listed", "with a token", "behind a proxy"])
def test_own_listed_and_authenticated_pages_may_write(local: Running, name: str) -> None:
    foreign = {"origin": "https://evil.example"}
    headers = {
        "own": {"origin": local.url},
        "listed": {"origin": "https://app.example"},
        "with a token": {**foreign, **bearer(token())},
        "behind a proxy": {**foreign, "x-forwarded-host": "evil.example"},
    }[name]
    assert httpx.post(f"{local.url}/threads", json={}, headers=headers).status_code == 200
    assert httpx.get(f"{local.url}/info", headers=foreign).status_code == 200


def test_local_server_refuses_web_sockets_of_foreign_pages(local: Running) -> None:
    thread = httpx.post(f"{local.url}/threads", json={}).json()["thread_id"]
    url = f"ws{local.url[4:]}/threads/{thread}/stream/events"
    with (
        pytest.raises(InvalidStatus, match="403"),
        connect(url, origin=Origin("http://evil.example")),
    ):
        pass
    for origin in (local.url, "https://app.example"):
        with connect(url, origin=Origin(origin)) as socket:
            socket.ping().wait(timeout=60)


def test_library_alone_authenticates_and_separates_tenants(tmp_path: Path) -> None:
    """As the wheel is used: its own program and authentication, and a token of its command."""
    env = {"APP_ENV": "staging", "JWT_SECRET": SECRET, "JWT_ISSUER": "me", "JWT_AUDIENCE": "here"}
    line = library("token", "--tenant", "acme", "--user", "ada")
    printed = ran(line, tmp_path, environment(**env))
    assert printed.returncode == 0, printed.stderr
    assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+\n", printed.stdout)
    ada = bearer(printed.stdout.strip())
    said = {"iss": "me", "aud": "here"}
    config = project(tmp_path, "threadhold.auth:auth")
    with served(tmp_path, config, program=library, JWT_OPERATOR_ISSUERS="me", **env) as server:
        made = httpx.post(f"{server.url}/threads", json={}, headers=ada, timeout=60).json()
        assert made["metadata"] == {"tenant_id": "acme", "user_id": "ada"}
        path = f"{server.url}/threads/{made['thread_id']}"
        assert httpx.get(path, headers=ada).status_code == 200
        other = bearer(token(tenant_id="globex", **said))
        assert httpx.get(path, headers=other).status_code == 404
        assert asked(server, token()).status_code == 401
        assert httpx.get(f"{server.url}/metrics", headers=ada).status_code == 403
        operator = bearer(token(roles=["operator"], **said))
        assert httpx.get(f"{server.url}/metrics", headers=operator).status_code == 200
        revoked = library("revoke", "--tenant", "acme", "--user", "ada")
        database = ("--database-url", databases.url(tmp_path / "data.db"))
        assert ran([*revoked, *database], tmp_path, environment(**env)).stdout.startswith("revoked")
        deadline = time.monotonic() + 60
        while httpx.get(path, headers=ada).status_code != 401:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_library_alone_does_not_start_without_a_key(tmp_path: Path) -> None:
    config = project(tmp_path, "threadhold.auth:auth")
    line = library("serve", "--config", config)
    ended = ran(line, tmp_path, environment(APP_ENV="production"))
    assert ended.returncode == 1
    assert "Error: APP_ENV=production needs a key to verify tokens with" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_local_dev_refuses_to_listen_on_all_addresses(tmp_path: Path) -> None:
    line = ["serve", "--config", str(project(tmp_path)), "--host", "0.0.0.0"]
    ended = run(tmp_path, *line, "--port", str(free_port()), JWT_SECRET=SECRET)
    assert ended.returncode == 1
    assert "0.0.0.0 can be reached from other machines" in ended.stderr
