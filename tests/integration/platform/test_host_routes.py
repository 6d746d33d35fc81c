"""Routes of a host: who asks, what the user may do, and what the audit log says of it.

The host is an app that knows nothing of the platform's routes. Each scenario has its own process.
"""

from pathlib import Path

import pytest

from tests.integration.platform.test_embedded import play

pytestmark = pytest.mark.usefixtures("each_database")

HOST = """
import pathlib
from fastapi import Depends, WebSocket
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import Route
from threadhold import gate, operations, sessions
from threadhold.users import User

checks = []


def user_of(request):
    checks.append(request.url.path)
    name = request.headers.get("x-user")
    if name == "banned":
        raise HTTPException(403, "banned")
    tenant = request.headers.get("x-tenant", "acme")
    if name == "late":
        sessions.begin(request.scope, expires_at=1.0, targets=[sessions.Target(token_id="t")])
    return {"identity": name, "tenant": tenant, "permissions": ["reader"]} if name else None


auth = '''
from langgraph_sdk import Auth
auth = Auth()

@auth.on.threads
async def own(ctx, value):
    owner = {"owner": ctx.user.identity, "tenant": ctx.user["tenant"]}
    value.setdefault("metadata", {}).update(owner)
    return owner
'''
pathlib.Path("own_auth.py").write_text(auth)
config = {
    "graphs": {"a": graph},
    "auth": {"path": "./own_auth.py:auth"},
    "sql": {
        "tenant_key": "tenant",
        "limits": {"tenants": {"few": {"requests_per_second": 2}}},
    },
}
platform = make(config=config, authenticate=user_of, audit_permission="reader")
app = FastAPI(lifespan=platform.lifespan)
PUT = gate.Operation("note", "put", None)


@app.get("/me")
async def me(user: User = Depends(platform.user)):
    return {
        "identity": user.identity, "tenant": user.tenant, "name": user.display_name,
        "permissions": user.permissions, "reads": user.reads.tenant,
    }


@app.put("/notes/{name}")
async def put(name: str, user: User = Depends(platform.user)):
    user.require("reader")
    async with gate.admitted(PUT, user, name=name):
        return {"stored": name}


@app.post("/ask")
async def ask(request: HTTPConnection, user: User = Depends(platform.user)):
    again = await platform.user(request)
    thread = await operations.create_thread(user, metadata={"kind": "ask"})
    run = {"assistant_id": "a", "input": {"value": request.headers["x-value"]}}
    done = await operations.wait_run(again, thread["thread_id"], run)
    stream = await operations.stream_run(user, thread["thread_id"], run)
    events = [part.event async for part in stream.parts()]
    state = await operations.read_state(user, thread["thread_id"])
    kept = await operations.read_run(user, done.thread_id, done.run_id)
    found = await operations.search_threads(user, metadata={"kind": "ask"}, limit=50)
    return {
        "thread": done.thread_id, "values": done.values, "events": events,
        "state": state["values"], "status": kept["status"],
        "found": [each["thread_id"] for each in found],
    }


@app.get("/long")
async def long(user: User = Depends(platform.user)):
    await user.check()


@app.get("/threads-of-mine/{thread_id}")
async def read(thread_id: str, user: User = Depends(platform.user)):
    return await operations.read_thread(user, thread_id)


@app.post("/stop/{thread_id}")
async def stop(thread_id: str, user: User = Depends(platform.user)):
    later = {"assistant_id": "a", "input": {"value": "x"}, "after_seconds": 3600}
    run = await operations.start_run(user, thread_id, later)
    await operations.cancel_run(user, thread_id, run.run_id)
    [found] = await operations.list_runs(user, thread_id, limit=1)
    try:
        await operations.cancel_run(user, thread_id, run.run_id)
    except HTTPException as error:
        return {"status": found["status"], "again": error.status_code}


@app.websocket("/socket")
async def socket(websocket: WebSocket):
    user = await platform.user(websocket)
    await websocket.accept()
    await websocket.send_json({"identity": user.identity})
    await websocket.close()


async def own(request):
    user = await platform.user(request)
    return JSONResponse({"identity": user.identity})


# Middleware of the host with a user of its own, which asks who calls the platform.
class Asks:
    async def __call__(self, scope, receive, send):
        scope["user"] = "the user of the host"
        await platform.user(HTTPConnection(scope))
        assert scope["user"] == "the user of the host"
        await platform(scope, receive, send)


platform.include([Route("/own/{name}", own)])
app.mount("/asks", Asks())
app.mount("/lg", platform)
NOWHERE = "/asks/threads/01a20000-0000-7000-8000-00000000dead"
ADA, EVE = {"x-user": "ada"}, {"x-user": "eve"}
"""


def test_a_user_is_checked_once_and_refused_as_by_the_api(tmp_path: Path) -> None:
    found, _ = play(
        tmp_path,
        HOST
        + """
async def dialled(headers):
    sent, scope = [], {
        "type": "websocket", "path": "/socket", "raw_path": b"/socket", "root_path": "",
        "query_string": b"", "headers": headers, "subprotocols": [], "scheme": "ws",
        "server": ("host", 80), "client": ("127.0.0.1", 1), "extensions": {},
    }

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return [message.get("status", message.get("text", message["type"])) for message in sent]


async def work(http):
    answers = {}
    for name, headers in {"nobody": {}, "banned": {"x-user": "banned"}, "ada": ADA}.items():
        for path in ("/me", "/lg/own/x"):
            checks.clear()
            answer = await http.get(path, headers=headers)
            answers[name + path] = [answer.status_code, answer.json(), len(checks)]
    few = {**ADA, "x-tenant": "few"}
    limited = [(await http.get(path, headers=few)).status_code for path in ["/me", "/lg/own/x", "/me"]]
    # What a user's request leaves behind must not let the next one in.
    await http.post("/ask", headers={**ADA, "x-value": "x"})
    after = (await http.get("/lg/threads/search", headers={})).status_code
    after = [after, (await http.post("/lg/threads", json={})).status_code]
    late = {"x-user": "late"}
    ends = [(await http.get(path, headers=late)).json() for path in ("/long", NOWHERE)]
    checks.clear()
    assert (await http.get("/asks/own/x", headers=ADA)).json() == {"identity": "ada"}
    assert len(checks) == 1
    sockets = [await dialled([(b"x-user", b"ada")]), await dialled([])]
    seen = (await http.get("/lg/own/x", headers=ADA)).headers.get("x-request-id")
    return answers, limited, after, sockets, bool(seen), ends

report(found=asked(app, work))
""",
    )
    answers, limited, after, sockets, has_id, ends = found["found"]
    assert (
        answers["nobody/me"]
        == answers["nobody/lg/own/x"]
        == [
            401,
            {"detail": "Not authenticated"},
            1,
        ]
    )
    assert answers["banned/me"] == answers["banned/lg/own/x"] == [403, {"detail": "banned"}, 1]
    assert answers["ada/me"] == [
        200,
        {
            "identity": "ada",
            "tenant": "acme",
            "name": "ada",
            "permissions": ["reader"],
            "reads": "acme",
        },
        1,
    ]
    assert answers["ada/lg/own/x"] == [200, {"identity": "ada"}, 1]
    assert limited == [200, 200, 429]
    assert after == [401, 401]
    assert sockets[0][1:2] == ['{"identity":"ada"}']
    assert sockets[1][0] == 401
    assert has_id
    assert ends == [{"detail": "The token has expired"}] * 2


def test_operations_act_as_the_user_and_are_entered(tmp_path: Path) -> None:
    found, _ = play(
        tmp_path,
        HOST
        + """
async def work(http):
    asked = await http.post("/ask", headers={**ADA, "x-value": "x"})
    assert asked.is_success, asked.text
    failed = (await http.post("/ask", headers={**ADA, "x-value": "fail"})).json()
    thread = asked.json()["thread"]
    foreign = await http.get(f"/threads-of-mine/{thread}", headers=EVE)
    wrong = await http.get("/threads-of-mine/nothing", headers=ADA)
    stopped = await http.post(f"/stop/{thread}", headers=ADA)
    once = {**ADA, "x-value": "x", "idempotency-key": "k1"}
    twice = [(await http.post("/ask", headers=once)).json()["thread"] for _ in range(2)]
    await http.put("/notes/mine", headers=ADA)
    refused = await http.put("/notes/mine", headers={})
    entries = (await http.get("/lg/audit", headers=ADA)).json()
    shown = [[each["action"], each["object"]["kind"], each["user"], each["method"], each["route"]]
             for each in entries]
    return [asked.json(), failed["values"], foreign.status_code, wrong.status_code,
            stopped.json(), twice[0] == twice[1], refused.status_code, shown]

report(found=asked(app, work))
""",
    )
    asked, failed, foreign, wrong, stopped, same, refused, entries = found["found"]
    assert asked["values"] == asked["state"] == {"value": "got x"}
    assert asked["status"] == "success"
    assert asked["thread"] in asked["found"]
    assert "values" in asked["events"]
    assert "as asked" in failed["__error__"]["message"]
    assert (foreign, wrong) == (404, 422)
    assert stopped == {"status": "interrupted", "again": 404}
    assert same
    assert ["put", "note", "ada", "PUT", "/notes/{name}"] in entries
    assert ["create", "run", "ada", "POST", "/ask"] in entries
    assert ["cancel", "run", "ada", "POST", "/stop/{thread_id}"] in entries
    assert refused == 401
