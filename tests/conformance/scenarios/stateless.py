"""Runs without an existing thread."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World
from .assistants import NOWHERE
from .streams import MESSAGES, pairs


@scenario()
async def wait(w: World) -> Any:
    body = {"assistant_id": "echo", "input": {"value": 1}}
    answer = await w.call("POST", "/runs/wait", body)
    thread = answer["headers"]["location"].split("/")[2]
    gone = await w.until(lambda: w.call("GET", f"/threads/{thread}"), lambda a: a["status"] == 404)
    return [answer, gone]


@scenario()
async def wait_and_keep(w: World) -> Any:
    body = {"assistant_id": "echo", "input": {"value": 1}, "on_completion": "keep"}
    answer = await w.call("POST", "/runs/wait", body)
    thread = answer["headers"]["location"].split("/")[2]
    return [answer, await w.sdk.threads.get(thread), await w.sdk.threads.get_state(thread)]


@scenario()
async def wait_on_an_error(w: World) -> Any:
    body = {"assistant_id": "failing", "input": {"message": "no good"}}
    return await w.call("POST", "/runs/wait", body)


@scenario()
async def wait_on_an_interrupt(w: World) -> Any:
    return await w.call("POST", "/runs/wait", {"assistant_id": "interrupt", "input": {}})


@scenario()
async def stream(w: World) -> Any:
    modes = ["values", "updates", "messages-tuple"]
    body = {"assistant_id": "tokens", "input": {**MESSAGES, "n": 3}, "stream_mode": modes}
    return pairs(await w.sse("POST", "/runs/stream", body))


@scenario()
async def stream_and_keep(w: World) -> Any:
    body = {"assistant_id": "steps", "input": {"count": 1}, "on_completion": "keep"}
    return pairs(await w.sse("POST", "/runs/stream", body))


@scenario()
async def stream_an_error(w: World) -> Any:
    body = {"assistant_id": "failing", "input": {"message": "no good"}}
    return pairs(await w.sse("POST", "/runs/stream", body))


@scenario()
async def stream_subgraphs(w: World) -> Any:
    body = {
        "assistant_id": "subgraph",
        "input": {"topic": "moss"},
        "stream_mode": ["updates"],
        "stream_subgraphs": True,
    }
    return pairs(await w.sse("POST", "/runs/stream", body))


@scenario()
async def background(w: World) -> Any:
    created = await w.call("POST", "/runs", {"assistant_id": "echo", "input": {"value": 1}})
    thread = created["body"]["thread_id"]
    gone = await w.until(lambda: w.call("GET", f"/threads/{thread}"), lambda a: a["status"] == 404)
    return [created, gone]


@scenario()
async def background_and_keep(w: World) -> Any:
    body = {"assistant_id": "echo", "input": {"value": 1}, "on_completion": "keep"}
    run = (await w.call("POST", "/runs", body))["body"]
    await w.run_status(run["thread_id"], run["run_id"], "success")
    return await w.sdk.threads.get(run["thread_id"])


@scenario()
async def batch(w: World) -> Any:
    bodies = [
        {"assistant_id": "echo", "input": {"value": n}, "on_completion": "keep"} for n in range(3)
    ]
    answer = await w.call("POST", "/runs/batch", bodies)
    values = []
    for run in answer["body"]:
        await w.run_status(run["thread_id"], run["run_id"], "success")
        values.append((await w.sdk.threads.get_state(run["thread_id"]))["values"])
    return [answer, values]


@scenario()
async def batch_refused(w: World) -> Any:
    return [
        await w.call("POST", "/runs/batch", []),
        await w.call("POST", "/runs/batch", {}),
        await w.call("POST", "/runs/batch", [{"assistant_id": "no-such-graph"}]),
        await w.call("POST", "/runs/batch", [{"input": {}}]),
    ]


@scenario()
async def refused(w: World) -> Any:
    bodies: list[Any] = [
        {},
        {"assistant_id": "no-such-graph"},
        {"assistant_id": NOWHERE},
        {"assistant_id": "echo", "on_completion": "explode"},
        {"assistant_id": "echo", "stream_mode": ["lifecycle"]},
    ]
    paths = ("/runs", "/runs/wait", "/runs/stream")
    return [[await w.call("POST", path, body) for body in bodies] for path in paths]


@scenario()
async def node_sees_context(w: World) -> Any:
    body = {"assistant_id": "configured", "input": {}, "context": {"greeting": "moin"}}
    return (await w.call("POST", "/runs/wait", body))["body"]


@scenario()
async def after_seconds(w: World) -> Any:
    body = {"assistant_id": "echo", "input": {"value": 1}, "after_seconds": 1}
    return await w.call("POST", "/runs/wait", body)


@scenario()
async def keep_and_resume(w: World) -> Any:
    body = {"assistant_id": "interrupt", "input": {"questions": ["q"]}, "on_completion": "keep"}
    answer = await w.call("POST", "/runs/wait", body)
    thread = answer["headers"]["location"].split("/")[2]
    ended = await w.sdk.runs.wait(thread, "interrupt", command={"resume": "yes"})
    return [answer["body"], ended, [run["status"] for run in await w.sdk.runs.list(thread)]]
