"""Health, information, metrics, documentation, and unknown routes."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World

# Routes that Threadhold adds.
ADDED = ("/me", "/threads/find", "/threads/stream", "/threads/{thread_id}/runs/{run_id}/partial")


@scenario()
async def ok(w: World) -> Any:
    return [await w.call("GET", path) for path in ("/ok", "/ok?check_db=1", "/ok?check_db=0")]


@scenario()
async def ok_refused(w: World) -> Any:
    return await w.call("GET", "/ok?check_db=perhaps")


@scenario()
async def info(w: World) -> Any:
    return await w.call("GET", "/info")


@scenario()
async def metrics_as_json(w: World) -> Any:
    answer = await w.call("GET", "/metrics?format=json")
    body = answer["body"]
    return [answer["status"], answer["headers"], sorted(body["queue"]), sorted(body["workers"])]


@scenario()
async def metrics_for_prometheus(w: World) -> Any:
    answer = await w.call("GET", "/metrics")
    families = [
        line.split()[2] for line in answer["body"].splitlines() if line.startswith("# TYPE")
    ]
    always = {"lg_api_num_pending_runs", "lg_api_workers_max", "lg_api_workers_active"}
    return [answer["status"], answer["headers"], sorted(always & set(families))]


@scenario(alone=True)
async def metrics_of_an_idle_queue(w: World) -> Any:
    async def look() -> Any:
        return (await w.call("GET", "/metrics?format=json"))["body"]

    # Runs of earlier scenarios may still be ending.
    body = await w.until(
        look,
        lambda body: (
            not body["workers"]["active"]
            and not body["queue"]["n_pending"] + body["queue"]["n_running"]
        ),
    )
    return [body["queue"], body["workers"]]


@scenario(alone=True)
async def metrics_of_a_busy_queue(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "sleeper", input={"seconds": 60})
    late = await w.sdk.runs.create(key, "echo", input={"value": 1})
    await w.run_status(key, run["run_id"], "running")
    body = (await w.call("GET", "/metrics?format=json"))["body"]
    await w.sdk.runs.cancel(key, late["run_id"])
    await w.sdk.runs.cancel(key, run["run_id"], wait=True)
    queue = {name: value is not None for name, value in body["queue"].items()}
    return [body["queue"]["n_pending"], body["queue"]["n_running"], queue, body["workers"]]


@scenario()
async def openapi(w: World) -> Any:
    answer = await w.call("GET", "/openapi.json")
    spec = answer["body"]
    paths = {path: ms for path, ms in spec["paths"].items() if path not in ADDED}
    operations = sorted(f"{method} {path}" for path, ms in paths.items() for method in ms)
    schemas = sorted(spec["components"]["schemas"])
    return [answer["status"], answer["headers"], spec["info"], operations, schemas]


@scenario()
async def docs(w: World) -> Any:
    answer = await w.call("GET", "/docs")
    return [
        answer["status"],
        answer["headers"],
        "<title>Agent Server API Reference" in answer["body"],
    ]


@scenario()
async def unknown_routes(w: World) -> Any:
    return [
        await w.call("GET", "/nowhere"),
        await w.call("POST", "/threads/x/y/z", {}),
        await w.call("PUT", "/threads", {}),
        await w.call("DELETE", "/assistants"),
        await w.call("GET", "/runs/wait"),
    ]


@scenario()
async def unusual_requests(w: World) -> Any:
    """Types, encodings and methods that a client may send by mistake."""
    body = b'{"graph_id": "echo"}'
    return [
        (await w.call("POST", "/assistants", content=body))["status"],
        (await w.call("POST", "/assistants", content=body, headers={"content-type": "text/plain"}))[
            "status"
        ],
        await w.call("POST", "/assistants", content=b"graph_id=echo"),
        await w.call("POST", "/threads/search", content=b"[" * 2000),
        (await w.call("HEAD", "/ok"))["status"],
    ]
