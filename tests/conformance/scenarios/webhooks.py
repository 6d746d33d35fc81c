"""Webhooks: the delivered document at the end of a run, and refused addresses."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World


async def delivered(w: World, graph: str, value: Any, **options: Any) -> Any:
    """Run a graph on a new thread with a webhook and return the delivered document."""
    mark, key = w.new_id(), await w.thread()
    url = w.receiver.url(mark)
    await w.sdk.runs.create(key, graph, input=value, webhook=url, **options)
    return await w.receiver.delivery(mark)


@scenario()
async def on_success(w: World) -> Any:
    return await delivered(w, "echo", {"value": 1}, metadata={"m": 1})


@scenario()
async def on_error(w: World) -> Any:
    return await delivered(w, "failing", {"error": "ValueError", "message": "no good"})


@scenario()
async def on_an_interrupt(w: World) -> Any:
    body = await delivered(w, "interrupt", {"questions": ["q"]})
    return [body["status"], body["values"], body.get("error")]


@scenario()
async def on_cancellation(w: World) -> Any:
    mark, key = w.new_id(), await w.thread()
    run = await w.sdk.runs.create(
        key, "sleeper", input={"seconds": 60}, webhook=w.receiver.url(mark)
    )
    # A run is running before it has stored its input, which the webhook delivers.
    await w.until(lambda: w.sdk.threads.get_state(key), lambda state: bool(state["values"]))
    await w.sdk.runs.cancel(key, run["run_id"])
    body = await w.receiver.delivery(mark)
    return [body["status"], body.get("error"), body["values"], body["run_id"] == run["run_id"]]


@scenario()
async def of_a_stateless_run(w: World) -> Any:
    mark = w.new_id()
    body = {"assistant_id": "echo", "input": {"value": 1}, "webhook": w.receiver.url(mark)}
    await w.call("POST", "/runs/wait", body)
    delivery = await w.receiver.delivery(mark)
    return [delivery["status"], delivery["values"]]


@scenario()
async def of_a_streamed_run(w: World) -> Any:
    mark, key = w.new_id(), await w.thread()
    body = {"assistant_id": "echo", "input": {"value": 1}, "webhook": w.receiver.url(mark)}
    await w.sse("POST", f"/threads/{key}/runs/stream", body)
    return (await w.receiver.delivery(mark))["status"]


@scenario()
async def refused_addresses(w: World) -> Any:
    key = await w.thread()
    urls = ["", "not a url", "ftp://example.org/x", "http://169.254.169.254/latest", "x" * 5000]
    bodies = [{"assistant_id": "echo", "input": {"value": 1}, "webhook": url} for url in urls]
    return [await w.call("POST", f"/threads/{key}/runs", body) for body in bodies]
