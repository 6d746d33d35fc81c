"""Nothing of the stock layer's development defaults is open, at the root or at a prefix.

The servers are started with every environment variable that would open them: a development shell
or a container image may have left it there. They run on SQLite only, because each refusal here
precedes the database; `test_matrix.py` and `test_advisories.py` ask on each database.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support import databases
from tests.support.processes import (
    GRAPHS,
    ROOT,
    Running,
    environment,
    free_port,
    ran,
    running,
    threadhold,
)

LEFTOVERS = {
    "LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev",
    "LANGGRAPH_RUNTIME_EDITION": "inmem",
    "LANGGRAPH_AUTH": "",
    "LANGGRAPH_HTTP": '{"cors": {"allow_origins": ["*"]}, "mount_prefix": "/noauth2"}',
    "LANGGRAPH_STRICT_MSGPACK": "false",
    "MIGRATIONS_PATH": "__inmem",
    "MOUNT_PREFIX": "/somewhere",
    "CORS_CONFIG": '{"allow_origins": ["*"]}',
    "CORS_ALLOW_ORIGINS": "",
    "ALLOW_PRIVATE_NETWORK": "true",
    "HTTP_MAX_REQUEST_BODY_BYTES": "999999999",
}

AUTH = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers):
    user = headers.get(b"x-user", b"").decode()
    if user == "broken":
        raise RuntimeError("the secret of the authenticator")
    if not user:
        raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")
    return {"identity": user}
"""

HOOKS = """
from langgraph_runtime_sql.hooks import Reject


class Policy:
    def before_thread_create(self, tx, thread):
        if thread["metadata"].get("closed"):
            raise Reject(409, {"error": "closed", "hint": ["create", {"a": "new one"}]})


policy = Policy()
"""

# Routes without authentication: whether the server is up, and its description.
PUBLIC = {"/", "/ok", "/info", "/docs", "/openapi.json"}

USER = {"x-user": "ada"}

TRICKS = {
    "nobody": {},
    "studio": {"x-auth-scheme": "langsmith"},
    "studio with a key": {"x-auth-scheme": "langsmith", "x-api-key": "lsv2_x"},
    "forwarded prefix": {"x-forwarded-prefix": "/noauth", "x-script-name": "/noauth"},
    "original url": {"x-original-url": "/ok", "x-rewrite-url": "/ui/x"},
    "host": {"host": "127.0.0.1/ui?"},
    "a user that is empty": {"x-user": ""},
}


@dataclass(frozen=True)
class Guarded:
    """A server with authentication; `url` is where the platform is."""

    url: str
    server: Running


def write_project(folder: Path) -> Path:
    (folder / "auth.py").write_text(AUTH)
    (folder / "hooks.py").write_text(HOOKS)
    config = {
        "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
        "auth": {"path": "./auth.py:auth", "disable_studio_auth": False},
        "sql": {"hooks": "./hooks.py:policy"},
    }
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module", params=["", "/langgraph"], ids=["root", "prefix"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder, port = tmp_path_factory.mktemp("guarded"), free_port()
    config, database = write_project(folder), folder / "guarded.db"
    if request.param:
        line = host(request.param, config, database, port)
    else:
        line = threadhold("serve", "--config", config, "--port", port)
        line += ["--database-url", databases.url(database)]
    env = environment(APP_ENV="production", **LEFTOVERS)
    with running(line, port, folder, env, ready=f"{request.param}/ok") as server:
        yield Guarded(server.url + request.param, server)


def host(prefix: str, config: Path, database: Path, port: int, *rest: str) -> list[str]:
    script = str(ROOT / "tests/support/host.py")
    return [
        *(sys.executable, script, "starlette", prefix),
        *(str(config), databases.url(database), str(port), *rest),
    ]


def run_script(code: str, folder: Path, **env: str) -> Any:
    """Run code in a process that has imported langgraph before. Return its last line, from JSON."""
    return answered(ran([sys.executable, "-c", code], folder, environment(**env)))


def run_first(code: str, folder: Path, **env: str) -> Any:
    """Run code in a process that has imported nothing before. Return its last line, from JSON."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return answered(ended)


def answered(ended: subprocess.CompletedProcess[str]) -> Any:
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def operations(url: str) -> list[tuple[str, str]]:
    """Return every method and path of the API, with ids that do not exist."""
    spec = httpx.get(f"{url}/openapi.json").json()
    filled = "00000000-0000-4000-8000-000000000000"
    return [
        (method.upper(), "/".join(filled if part.startswith("{") else part for part in parts))
        for parts, methods in ((path.split("/"), item) for path, item in spec["paths"].items())
        for method in methods
        if method in ("get", "post", "put", "patch", "delete")
    ]


@pytest.mark.parametrize("trick", TRICKS)
def test_every_operation_needs_authentication(guarded: Guarded, trick: str) -> None:
    asked = operations(guarded.url)
    assert len(asked) > 40
    with httpx.Client(base_url=guarded.url, headers=TRICKS[trick]) as client:
        answers = {
            f"{method} {path}": client.request(method, path, json={}).status_code
            for method, path in asked
            if path not in PUBLIC
        }
    assert {name: code for name, code in answers.items() if code not in (401, 404, 405)} == {}
    # 404 is for optional routes that are not there at all, hence few.
    assert sum(code == 401 for code in answers.values()) > 40


@pytest.mark.usefixtures("each_database")
def test_metrics_are_closed_unless_a_token_or_a_setting_opens_them(tmp_path: Path) -> None:
    config, token = write_project(tmp_path), "s3cret-of-the-scraper"
    asked: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, USER),
        ({"METRICS_TOKEN": token}, {}),
        ({"METRICS_TOKEN": token}, {"authorization": f"Bearer {token}x"}),
        ({"METRICS_TOKEN": token}, {"authorization": f"bearer {token}"}),
        ({"PUBLIC_METRICS": "true"}, {}),
    ]
    seen = []
    for settings, headers in asked:
        port = free_port()
        line = threadhold("serve", "--config", config, "--port", port)
        line += ["--database-url", databases.url(tmp_path / "metrics.db")]
        with running(line, port, tmp_path, environment(APP_ENV="production", **settings)) as server:
            answer = httpx.get(f"{server.url}/metrics", headers=headers)
            as_json = httpx.get(f"{server.url}/metrics?format=json", headers=headers)
            assert as_json.status_code == answer.status_code
            seen.append(answer.status_code)
    assert seen == [404, 401, 401, 200, 200]


@pytest.mark.parametrize("trick", TRICKS)
def test_web_socket_without_authentication_is_refused(guarded: Guarded, trick: str) -> None:
    headers = {name: value for name, value in TRICKS[trick].items() if name != "host"}
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(web_socket(guarded), additional_headers=headers),
    ):
        pass
    assert refused.value.response.status_code in (401, 403)


def test_web_socket_with_authentication_is_answered(guarded: Guarded) -> None:
    with connect(web_socket(guarded), additional_headers=USER) as socket_:
        socket_.send("{")
        assert json.loads(socket_.recv(timeout=60))["type"] == "error"


def web_socket(guarded: Guarded) -> str:
    """Create a thread. Return the URL of its event stream."""
    made = httpx.post(f"{guarded.url}/threads", json={}, headers=USER).json()
    return f"ws{guarded.url.removeprefix('http')}/threads/{made['thread_id']}/stream/events"


def test_authenticated_user_creates_and_reads_a_thread(guarded: Guarded) -> None:
    made = httpx.post(f"{guarded.url}/threads", json={}, headers=USER)
    assert made.status_code == 200
    read = f"{guarded.url}/threads/{made.json()['thread_id']}"
    assert httpx.get(read, headers=USER).status_code == 200
    assert httpx.get(read).status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/internal/truncate"),
        ("GET", "/internal/debug/thread/00000000-0000-4000-8000-000000000000"),
        ("POST", "/deploy"),
        ("GET", "/deploy"),
        ("GET", "/ui/echo/index.js"),
        ("GET", "/ui/../threads"),
        ("GET", "/ui"),
    ],
)
def test_unauthenticated_routes_of_development_servers_do_not_exist(
    guarded: Guarded, method: str, path: str
) -> None:
    made = httpx.post(f"{guarded.url}/threads", json={}, headers=USER).json()
    body = {"assistants": True, "threads": True, "runs": True, "store": True, "checkpoints": True}
    answer = httpx.request(method, guarded.url + path, json=body)
    assert answer.status_code in (401, 404, 405)
    kept = httpx.get(f"{guarded.url}/threads/{made['thread_id']}", headers=USER)
    assert kept.status_code == 200


def test_body_with_a_too_large_content_length_is_413(guarded: Guarded) -> None:
    answer = httpx.post(f"{guarded.url}/threads", content=b"x" * (2**20 + 1), headers=USER)
    assert answer.status_code == 413
    (detail,) = answer.json().values()
    assert detail.startswith("Request body too large: 1048577 bytes (limit: 1048576 bytes")
    assert "max_body_bytes" in detail


@pytest.mark.parametrize("size", [2**10, 3 * 2**20])
async def test_client_that_sends_a_too_large_body_receives_the_413(
    guarded: Guarded, size: int
) -> None:
    """Clients write the whole body before they read; if the server closes early, they see no answer."""
    body = b"x" * (2**20 + size)
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.post(f"{guarded.url}/threads", content=body, headers=USER)
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/threads", "/mcp", "/runs/stream", "/threads/x/stream/events"])
def test_streamed_body_past_the_limit_is_413(guarded: Guarded, path: str) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(11):
            yield b" " * 2**17

    path = path.replace("/x/", "/00000000-0000-4000-8000-000000000000/")
    answer = httpx.post(guarded.url + path, content=pieces(), headers=USER)
    assert answer.status_code in (404, 413)
    assert "detail" in answer.json()
    assert path.startswith("/threads/") or answer.status_code == 413


@pytest.mark.parametrize("depth", [200, 300, 1000, 10_000, 100_000])
@pytest.mark.parametrize("path", ["/threads", "/threads/search", "/runs/wait", "/store/items"])
def test_deeply_nested_json_is_no_5xx(guarded: Guarded, path: str, depth: int) -> None:
    bomb = '{"metadata": ' + '{"a": ' * depth + "1" + "}" * depth + ', "assistant_id": "echo"}'
    method = "PUT" if path == "/store/items" else "POST"
    answer = httpx.request(method, guarded.url + path, content=bomb, headers=USER)
    assert answer.status_code < 500
    assert depth < 1000 or answer.status_code in (400, 422)


def test_deeply_nested_json_is_400_in_mcp(guarded: Guarded) -> None:
    accept = {"accept": "application/json, text/event-stream"}
    bomb = '{"a": ' * 20_000 + "1" + "}" * 20_000
    answer = httpx.post(f"{guarded.url}/mcp", content=bomb, headers={**USER, **accept})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "webhook",
    [
        "/threads",
        "//127.0.0.1/x",
        "http://example.com/x",
        "https://localhost/x",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://[::1]/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://0.0.0.0/x",
        "https://10.1.2.3/x",
        "https://192.168.1.1/x",
        "https://172.16.0.1/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00::1]/x",
        "file:///etc/passwd",
        "https://",
    ],
)
def test_webhook_to_a_private_address_is_422(guarded: Guarded, webhook: str) -> None:
    """GHSA-2c9q-c2q9-qgqv: a relative webhook reached the API itself without authentication."""
    body = {"assistant_id": "echo", "input": {}, "webhook": webhook}
    answer = httpx.post(f"{guarded.url}/runs", json=body, headers=USER, timeout=60)
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_foreign_origins_get_no_cors_headers(guarded: Guarded) -> None:
    foreign = {**USER, "origin": "https://evil.example"}
    answer = httpx.get(f"{guarded.url}/info", headers=foreign)
    assert "access-control-allow-origin" not in answer.headers
    preflight = httpx.options(
        f"{guarded.url}/threads",
        headers={**foreign, "access-control-request-method": "POST"},
    )
    assert preflight.status_code == 400
    assert "access-control-allow-origin" not in preflight.headers
    assert "access-control-allow-private-network" not in preflight.headers


def test_unexpected_error_is_a_500_with_only_a_log_reference(guarded: Guarded) -> None:
    answer = httpx.get(f"{guarded.url}/threads/x", headers={"x-user": "broken"})
    assert answer.status_code == 500
    body = answer.json()
    assert body == {"detail": "Internal server error", "reference": body["reference"]}
    deadline = time.monotonic() + 60
    while body["reference"] not in guarded.server.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "the secret of the authenticator" in guarded.server.log.read_text()


def test_rejection_by_a_hook_is_answered_verbatim(guarded: Guarded) -> None:
    answer = httpx.post(f"{guarded.url}/threads", json={"metadata": {"closed": 1}}, headers=USER)
    assert answer.status_code == 409
    assert answer.json() == {"error": "closed", "hint": ["create", {"a": "new one"}]}


@pytest.mark.parametrize(
    ("header", "value"),
    [("x-request-id", b"\xff\xfe"), ("x-user", b"\xff"), ("content-type", b"\xff")],
)
def test_undecodable_headers_are_no_5xx(guarded: Guarded, header: str, value: bytes) -> None:
    headers: list[tuple[bytes, bytes]] = [(header.encode(), value)]
    if header != "x-user":
        headers.append((b"x-user", b"ada"))
    answer = httpx.post(f"{guarded.url}/threads", content=b"{}", headers=headers)
    assert answer.status_code < 500


@pytest.mark.parametrize("query", [b"a=%ff%00&%ff=1", b"a=\xff\xfe", b"limit=\xc3"])
def test_undecodable_query_is_4xx(guarded: Guarded, query: bytes) -> None:
    """The test writes the request itself, because HTTP clients quote such bytes."""
    url = httpx.URL(guarded.url)
    request = b"GET " + url.raw_path.rstrip(b"/") + b"/threads/x?" + query + b" HTTP/1.1\r\n"
    request += b"host: x\r\nx-user: ada\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", url.port or 80), timeout=60) as connection:
        connection.sendall(request)
        status = connection.makefile("rb").readline().split()[1]
    assert status.startswith(b"4")


def test_root_path_noauth_is_421(tmp_path: Path) -> None:
    """`uvicorn --root-path /noauth`, or a proxy that sets it, looks like the SDK's own loopback."""
    config, port = write_project(tmp_path), free_port()
    line = host("", config, tmp_path / "x.db", port, "/noauth")
    with running(line, port, tmp_path, environment(), ready="/state") as server:
        answer = httpx.post(f"{server.url}/threads", json={})
        assert answer.status_code == 421
        assert "/noauth" in answer.json()["detail"]


MOUNTS = """
import asyncio, json
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount
from threadhold.platform import ForbiddenPrefix, LangGraphPlatform

platform = LangGraphPlatform("langgraph.json", database_url="sqlite:///x.db")


async def enter(app):
    try:
        async with app.router.lifespan_context(app):
            return "started"
    except ForbiddenPrefix as error:
        return str(error)


apps = [
    Starlette(routes=[Mount(prefix, app=platform)], lifespan=platform.lifespan)
    for prefix in ("/ui", "/uikit", "/ui/deep", "/noauth", "/noauth/deep")
]
apps.append(Starlette(
    routes=[Mount("/noauth", routes=[Mount("/x", app=platform)])], lifespan=platform.lifespan
))
apps.append(Starlette(
    routes=[Mount("/ui", app=platform, middleware=[Middleware(GZipMiddleware)])],
    lifespan=platform.lifespan,
))
print(json.dumps([asyncio.run(enter(app)) for app in apps]))
"""


def test_mounts_where_the_stock_api_skips_authentication_are_refused(tmp_path: Path) -> None:
    write_project(tmp_path)
    answers = run_script(MOUNTS, tmp_path)
    assert len(answers) == 7
    for answer in answers:
        assert "cannot be mounted at" in answer
        assert "skips authentication" in answer


POISON = """
import json, sys
{before}
from threadhold.platform import LangGraphPlatform

platform = LangGraphPlatform("langgraph.json", database_url="sqlite:///x.db")
platform.app
from langgraph_api import config
from langgraph_api.serde import Serializer

payload = bytes.fromhex(open("poison.hex").read())
read = Serializer().loads_typed(("msgpack", payload))
print(json.dumps({{
    "pickle": config.USE_PICKLE_FALLBACK,
    "variant": config.API_VARIANT,
    "read": str(type(read["x"])),
    "imported": "evil" in sys.modules,
}}))
"""

MAKE_POISON = """
import json, evil
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

_, payload = JsonPlusSerializer().dumps_typed({"x": evil.Evil("y")})
open("poison.hex", "w").write(payload.hex())
print(json.dumps(len(payload)))
"""

EVIL = """
import dataclasses, pathlib


@dataclasses.dataclass
class Evil:
    x: str

    def __post_init__(self):
        pathlib.Path("ran").touch()
"""


@pytest.mark.parametrize(
    ("run", "before"),
    [(run_first, ""), (run_script, "import langgraph.graph.state")],
    ids=["first", "after langgraph"],
)
def test_poisoned_checkpoint_runs_no_code(
    tmp_path: Path, run: Callable[..., Any], before: str
) -> None:
    """CVE-2026-28277: types named in a checkpoint were imported and called."""
    write_project(tmp_path)
    (tmp_path / "evil.py").write_text(EVIL)
    run_script(MAKE_POISON, tmp_path)
    (tmp_path / "ran").unlink()
    found = run(POISON.format(before=before), tmp_path, **LEFTOVERS)
    assert found["pickle"] is False
    assert found["variant"] == ""
    assert found["imported"] is False
    assert "Evil" not in found["read"]
    assert not (tmp_path / "ran").exists()


def test_pickled_checkpoint_is_refused(tmp_path: Path) -> None:
    """CVE-2026-27794 and similar: the serializer never unpickles."""
    write_project(tmp_path)
    code = (
        "import json, pickle\n"
        "from threadhold.platform import LangGraphPlatform\n"
        "LangGraphPlatform('langgraph.json', database_url='sqlite:///x.db').app\n"
        "from langgraph_api.serde import Serializer\n"
        "try:\n"
        "    read = Serializer().loads_typed(('pickle', pickle.dumps({'a': 1})))\n"
        "except (NotImplementedError, ValueError) as error:\n"
        "    read = 'refused'\n"
        "print(json.dumps(read))\n"
    )
    assert run_script(code, tmp_path) == "refused"
