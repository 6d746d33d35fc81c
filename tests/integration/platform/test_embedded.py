"""What a host app gives to the platform: graphs, users, CORS, a prefix, a page of docs, and logs."""

import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.integration.platform.test_one_platform import PRELUDE
from tests.support import databases
from tests.support.processes import GRAPHS, ROOT, environment, free_port, library, ran, running
from tests.support.served import served

PARTS = (
    PRELUDE
    + """
from typing import TypedDict
from fastapi import FastAPI
from langgraph.graph import StateGraph
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware


class State(TypedDict, total=False):
    value: str


def answer(state: State) -> State:
    if state.get("value") == "fail":
        raise RuntimeError("as asked")
    return {"value": "got " + state["value"]}


builder = StateGraph(State).add_node("answer", answer).add_edge("__start__", "answer")
graph = builder.compile()


def hosted(framework, platform, prefix="", **options):
    if framework == "fastapi":
        app = FastAPI(lifespan=platform.lifespan, **options)
        app.mount(prefix, platform)
        return app
    return Starlette(
        routes=[Mount(prefix or "/", app=platform)], lifespan=platform.lifespan, **options
    )


def asked(app, work):
    async def main():
        async with app.router.lifespan_context(app), client(app) as http:
            return await work(http)
    return asyncio.run(main())
"""
)


def play(folder: Path, code: str) -> tuple[Any, str]:
    """Run code in a process. Return the last line it printed, from JSON, and what it logged."""
    env = environment(KEPT_AT=databases.url(folder / "x.db"))
    ended = ran([sys.executable, "-c", PARTS + code], folder, env)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1]), ended.stderr


def test_graphs_may_be_objects(tmp_path: Path) -> None:
    found, _ = play(
        tmp_path,
        """
graphs = {"compiled": graph, "builder": {"path": builder, "description": "B"}}
app = hosted("starlette", make(config={"graphs": graphs}))
# The same objects make the same platform.
make(config={"graphs": graphs})


async def work(http):
    return [
        (await http.post("/runs/wait", json={"assistant_id": name, "input": {"value": "x"}})).json()
        for name in graphs
    ]

report(found=asked(app, work))
""",
    )
    assert found["found"] == [{"value": "got x"}] * 2


AUTH = """
from langgraph_sdk import Auth
auth = Auth()

@auth.authenticate
async def never(authorization: str | None) -> str:
    raise AssertionError("the host authenticates")

@auth.on.threads
async def own(ctx, value):
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}
"""


@pytest.mark.parametrize("framework", ["starlette", "fastapi"])
@pytest.mark.parametrize("project", ["with auth", "without auth"])
def test_the_host_authenticates(framework: str, project: str, tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text(AUTH)
    section = {"auth": {"path": "./auth.py:auth"}} if project == "with auth" else {}
    found, _ = play(
        tmp_path,
        f"""
def user_of(request):
    name = request.cookies.get("session")
    if name == "banned":
        raise HTTPException(403, "banned")
    return {{"identity": name}} if name else None

config = {{"graphs": {{"a": graph}}, **{section!r}}}
app = hosted({framework!r}, make(config=config, authenticate=user_of), "/lg")


async def one(http, cookie):
    headers = {{"cookie": cookie}} if cookie else {{}}
    made = await http.post("/lg/threads", json={{}}, headers=headers)
    found = await http.post("/lg/threads/search", json={{}}, headers=headers)
    run = await http.post(
        "/lg/runs/wait", json={{"assistant_id": "a", "input": {{"value": "x"}}}}, headers=headers
    )
    return made.status_code, found.json(), run.status_code


async def work(http):
    cookies = (None, "session=banned", "session=ann", "session=bob")
    # In tasks of their own, as on a server.
    return [await asyncio.create_task(one(http, cookie)) for cookie in cookies]

report(found=asked(app, work))
""",
    )
    nobody, banned, ann, bob = found["found"]
    assert nobody == [401, {"detail": "Not authenticated"}, 401]
    assert banned == [403, {"detail": "banned"}, 403]
    assert [ann[0], ann[2], bob[0], bob[2]] == [200] * 4
    # The project's other handlers still decide who sees what.
    assert len(bob[1]) == (1 if project == "with auth" else 2)


@pytest.mark.parametrize("framework", ["starlette", "fastapi"])
def test_the_cors_of_the_host_counts(framework: str, tmp_path: Path) -> None:
    found, log = play(
        tmp_path,
        f"""
import logging
logging.basicConfig(level="INFO")
cors = Middleware(CORSMiddleware, allow_origins=["https://app.example"], allow_methods=["*"])
app = hosted({framework!r}, make(config={{"graphs": {{"a": graph}}}}), middleware=[cors])


async def work(http):
    answers = []
    for origin in ("https://app.example", "https://evil.example", "https://evil.example"):
        made = await http.post("/threads", json={{}}, headers={{"origin": origin}})
        answers.append([made.status_code, made.headers.get("access-control-allow-origin")])
    return answers

report(found=asked(app, work))
""",
    )
    refused = [403, None]
    assert found["found"] == [[200, "https://app.example"], refused, refused]
    told = [line for line in log.splitlines() if "Refused the web origin" in line]
    assert len(told) == 1
    assert "https://evil.example" in told[0]
    assert "CORS_ALLOW_ORIGINS" in told[0]


def test_the_mount_prefix_holds_in_a_host_and_probes_find_ok(tmp_path: Path) -> None:
    found, _ = play(
        tmp_path,
        """
config = {"graphs": {"a": graph}, "http": {"mount_prefix": "/api"}}
app = hosted("starlette", make(config=config))


async def work(http):
    paths = ("/ok", "/api/ok", "/api/info", "/info", "/apiinfo")
    statuses = [(await http.get(path)).status_code for path in paths]
    return statuses, (await http.get("/api/openapi.json")).json()["servers"]

report(found=asked(app, work))
""",
    )
    assert found["found"] == [[200, 200, 200, 404, 404], [{"url": "/api"}]]


def test_the_docs_of_the_host_include_the_platform(tmp_path: Path) -> None:
    found, _ = play(
        tmp_path,
        """
platform = make(config={"graphs": {"a": graph}})
app = hosted("fastapi", platform, "/lg")
app.get("/mine")(lambda: "mine")
platform.describe_in(app, "/lg")


async def work(http):
    spec = (await http.get("/openapi.json")).json()
    text = json.dumps(spec)
    refs = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    return sorted(spec["paths"]), sorted(refs - spec["components"]["schemas"].keys())

report(found=asked(app, work))
""",
    )
    paths, dangling = found["found"]
    assert {"/mine", "/lg/threads", "/lg/runs/stream"} <= set(paths)
    assert dangling == []


def test_a_failed_run_is_logged_once_and_a_refusal_in_one_line(tmp_path: Path) -> None:
    """As with `uvicorn app:app`: the host configures only `logging`."""
    _, log = play(
        tmp_path,
        """
import logging
logging.basicConfig(level="INFO", format="%(levelname)s %(name)s %(message)s")
app = hosted("starlette", make(config={"graphs": {"a": graph}}))


async def work(http):
    body = {"assistant_id": "a", "input": {"value": "fail"}}
    await http.post("/runs/wait", json=body)
    print("--- refusals", file=sys.stderr, flush=True)
    await http.get("/threads/nope")
    await http.post("/runs/wait", json={})
    print("--- end", file=sys.stderr, flush=True)

report(found=asked(app, work))
""",
    )
    failed, _, rest = log.partition("--- refusals")
    refusals = [
        line for line in rest.partition("--- end")[0].splitlines() if "HTTP Req" not in line
    ]
    assert failed.count("Traceback (most recent call last)") == 1
    assert failed.count("RuntimeError: as asked") == 1
    assert "{'" not in log
    assert [line.split()[-2] for line in refusals if line] == ["422", "422"]


UI = """#!/bin/sh
# Stands in for npx: builds one component, and watches.
mkdir -p "$5/public/echo"
echo 'console.log("built of '"$LANGGRAPH_UI"'")' > "$5/public/echo/entrypoint.js"
echo '{"echo": {"name": "echo", "assets": ["entrypoint.js"]}}' > "$5/schemas.json"
exec sleep 600
"""


@pytest.mark.parametrize("node", ["there", "missing"])
def test_the_components_of_ui_are_served(node: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    if node == "there":
        (tools / "npx").write_text(UI)
        (tools / "npx").chmod(0o755)
    (tmp_path / "ui.tsx").write_text("export default {};\n")
    config = tmp_path / "langgraph.json"
    graphs = {"echo": f"{GRAPHS}/echo.py:graph"}
    config.write_text(json.dumps({"graphs": graphs, "ui": {"echo": "./ui.tsx"}}))
    path = os.pathsep.join([str(tools), "/bin", "/usr/bin"]) if node == "there" else str(tools)
    port = free_port()
    command = library("serve", "--config", config, "--port", str(port))
    env = environment(PATH=path, DATABASE_URL=databases.url(tmp_path / "x.db"))
    with running(command, port, tmp_path, env) as server, httpx.Client(base_url=server.url) as http:
        if node == "missing":
            assert "ui_not_served" in server.log.read_text()
            assert http.post("/ui/echo", json={"name": "card"}).status_code == 404
            return
        while (page := http.post("/ui/echo", json={"name": "card"})).status_code == 404:
            pass
        assert "/ui/echo/entrypoint.js" in page.text
        assert "./ui.tsx" in http.get("/ui/echo/entrypoint.js").text


def test_streams_of_a_host_go_on_after_sigterm(tmp_path: Path) -> None:
    """As with `uvicorn app:app`: the server's own signal handler, and the platform below a mount."""
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"graphs": {"tokens": f"{GRAPHS}/tokens.py:graph"}}))
    port = free_port()
    command = [sys.executable, str(ROOT / "tests/support/host.py"), "fastapi", "/lg", str(config)]
    command += [databases.url(tmp_path / "x.db"), str(port)]
    input = {"n": 30, "delay": 0.05, "mode": "custom"}
    body = {"assistant_id": "tokens", "input": input, "stream_mode": ["custom"]}
    with running(command, port, tmp_path, environment(), ready="/lg/ok") as server:
        names = []
        with httpx.stream("POST", f"{server.url}/lg/runs/stream", json=body, timeout=60) as answer:
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    names.append(line.removeprefix("event: "))
                if len(names) == 3:
                    server.process.terminate()
        server.process.wait(60)
        assert names.count("custom") == input["n"]
        assert "ERROR" not in server.log.read_text()
        assert "Traceback" not in server.log.read_text()


@pytest.mark.usefixtures("each_database")
def test_the_first_command_of_a_thread_warns_of_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        thread = f"/threads/{uuid4()}"
        params = {"assistant_id": "echo", "input": {"value": "x"}}
        command = {"id": 1, "method": "run.start", "params": params}
        assert http.post(f"{thread}/commands", json=command).json()["type"] == "success"
        assert "interrupt_lookup_failed" not in server.log.read_text()
        assert '"warning"' not in server.log.read_text()


def test_arguments_of_a_wrong_type_are_named(tmp_path: Path) -> None:
    found, _ = play(
        tmp_path,
        """
wrong = dict(
    database_url=None, redis_url=5, public_url=5, n_jobs="3", grace_seconds=-1, env=["A"],
    max_body_bytes="1", max_json_depth="9", body_timeout_seconds=None, audit_retention_days="x",
    webhook_secrets="whsec_x", old_aes_keys="not shown", authenticate=lambda: "ann",
    cors={"allow_origins": "*"},
)
said = {}
for name, value in wrong.items():
    try:
        make(config={"graphs": {"a": graph}}, **{name: value})
    except Exception as error:
        said[name] = [type(error).__name__, str(error)]
app = Starlette()
try:
    make(config={"graphs": {"a": graph}}).describe_in(app)
except Exception as error:
    said["describe_in"] = [type(error).__name__, str(error)]
report(**said)
""",
    )
    assert len(found) == 15
    for name, (kind, text) in found.items():
        assert kind == "ConfigError" and name in text, text
        assert "not shown" not in text


def test_a_failing_function_of_the_host_is_a_500_and_its_message_stays_inside(
    tmp_path: Path,
) -> None:
    found, _ = play(
        tmp_path,
        """
def user_of(request):
    name = request.headers["x-user"]
    if name == "broken":
        raise ValueError("internal detail")
    return {"none": {"name": "x"}, "number": 5, "id": {"identity": 7}}[name]

app = hosted("fastapi", make(config={"graphs": {"a": graph}}, authenticate=user_of), "/lg")

async def work(http):
    names = ("broken", "none", "number", "id")
    answers = [await http.post("/lg/threads", json={}, headers={"x-user": n}) for n in names]
    return [[each.status_code, each.text] for each in answers]

report(found=asked(app, work))
""",
    )
    assert [status for status, _ in found["found"]] == [500, 500, 500, 200]
    assert "internal detail" not in str(found)


def test_each_request_of_one_task_has_its_own_user(tmp_path: Path) -> None:
    """As of a host that calls the platform in its own process for one user after the other."""
    (tmp_path / "auth.py").write_text(AUTH)
    found, logged = play(
        tmp_path,
        """
config = {"graphs": {"a": graph}, "auth": {"path": "./auth.py:auth"}}
platform = make(config=config, authenticate=lambda request: request.headers.get("x-user"))
app = hosted("fastapi", platform, "/lg")

async def work(http):
    ann, eve = {"x-user": "ann"}, {"x-user": "eve"}
    thread = (await http.post("/lg/threads", json={}, headers=ann)).json()
    path = f"/lg/threads/{thread['thread_id']}"
    params = {"assistant_id": "a", "input": {"value": "x"}}
    command = {"id": 1, "method": "run.start", "params": params}
    commanded = await http.post(f"{path}/commands", json=command, headers=eve)
    streamed = await http.post(f"{path}/stream/events", json={"channels": ["values"]}, headers=eve)
    return [
        (await http.get(path, headers=eve)).status_code,
        (await http.post("/lg/threads", json={}, headers=eve)).json()["metadata"]["owner"],
        commanded.json()["type"],
        "unknown_error" in streamed.text,
        (await http.get(path)).status_code,
    ]

report(found=asked(app, work))
""",
    )
    assert found["found"] == [404, "eve", "error", True, 401]
    # A refusal is neither a failure nor a warning of the platform.
    for sign in ("Traceback", "NoneType: None", "interrupt_lookup_failed"):
        assert sign not in logged
