"""Streams of runs: every mode, subgraphs, joining, resuming, disconnecting."""

from __future__ import annotations

import asyncio
from typing import Any

from ..registry import scenario
from ..world import SOON, World

MESSAGES = {"messages": [{"role": "user", "content": "count", "id": "m1"}]}


async def streamed(w: World, graph: str, value: Any, **options: Any) -> Any:
    """Start a run on a new thread and return all its events as [event, data]."""
    key = await w.thread()
    body = {"assistant_id": graph, "input": value, **options}
    events = await w.sse("POST", f"/threads/{key}/runs/stream", body)
    return pairs(events)


def pairs(events: list[dict[str, Any]]) -> list[Any]:
    """Return events without their ids, which other scenarios compare."""
    return [[event["event"], event.get("data")] for event in events]


@scenario()
async def values(w: World) -> Any:
    return await streamed(w, "steps", {"count": 2})


@scenario()
async def updates(w: World) -> Any:
    return await streamed(w, "steps", {"count": 2}, stream_mode="updates")


@scenario()
async def messages(w: World) -> Any:
    return await streamed(w, "tokens", {**MESSAGES, "n": 4}, stream_mode="messages")


@scenario()
async def messages_tuple(w: World) -> Any:
    return await streamed(w, "tokens", {**MESSAGES, "n": 4}, stream_mode="messages-tuple")


@scenario()
async def custom(w: World) -> Any:
    value = {"n": 4, "mode": "custom"}
    return await streamed(w, "tokens", value, stream_mode=["custom"])


@scenario()
async def debug(w: World) -> Any:
    return await streamed(w, "steps", {"count": 1}, stream_mode="debug")


@scenario()
async def tasks(w: World) -> Any:
    return await streamed(w, "steps", {"count": 1}, stream_mode="tasks")


@scenario()
async def checkpoints(w: World) -> Any:
    return await streamed(w, "steps", {"count": 1}, stream_mode="checkpoints")


@scenario()
async def events(w: World) -> Any:
    return await streamed(w, "echo", {"value": 1}, stream_mode="events")


@scenario()
async def several_modes(w: World) -> Any:
    modes = ["values", "updates", "tasks", "custom"]
    return await streamed(w, "tokens", {"n": 2, "mode": "custom"}, stream_mode=modes)


@scenario()
async def empty_list_of_modes(w: World) -> Any:
    return await streamed(w, "echo", {"value": 1}, stream_mode=[])


@scenario()
async def without_subgraphs(w: World) -> Any:
    return await streamed(w, "subgraph", {"topic": "moss"}, stream_mode=["updates"])


@scenario()
async def with_subgraphs(w: World) -> Any:
    modes = ["updates", "values"]
    options = {"stream_mode": modes, "stream_subgraphs": True}
    return await streamed(w, "subgraph", {"topic": "moss"}, **options)


@scenario()
async def with_interrupt(w: World) -> Any:
    key = await w.thread()
    path = f"/threads/{key}/runs/stream"
    body = {"assistant_id": "interrupt", "stream_mode": ["updates", "values"]}
    asked = await w.sse("POST", path, {**body, "input": {"questions": ["q"]}})
    answered = await w.sse("POST", path, {**body, "command": {"resume": "yes"}})
    return [pairs(asked), pairs(answered)]


@scenario()
async def interrupted_before_a_node(w: World) -> Any:
    return await streamed(w, "steps", {"count": 1}, interrupt_before=["step"])


@scenario()
async def with_error(w: World) -> Any:
    return await streamed(w, "failing", {"error": "ValueError", "message": "no good"})


@scenario()
async def with_error_after_tokens(w: World) -> Any:
    modes = ["updates", "values"]
    return await streamed(w, "steps", {"count": 3, "fail_at": 1}, stream_mode=modes)


@scenario()
async def fan_out(w: World) -> Any:
    """Tasks of a step may end in any order, but every update must be there."""
    found = await streamed(w, "dispatch", {"items": [1, 2]}, stream_mode="updates")
    return [found[:2], sorted(map(str, found[2:-1])), found[-1]]


@scenario()
async def headers(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "echo", "input": {"value": 1}}
    stateful = await w.call("POST", f"/threads/{key}/runs/stream", body)
    stateless = await w.call("POST", "/runs/stream", body)
    return [stateful["headers"], stateless["headers"]]


@scenario()
async def through_the_sdk(w: World) -> Any:
    """The typed parts of both SDK versions."""
    key = await w.thread()
    modes: Any = ["updates", "values"]
    old = [
        [part.event, part.data]
        async for part in w.sdk.runs.stream(key, "echo", input={"value": 1}, stream_mode=modes)
    ]
    new = [
        part
        async for part in w.sdk.runs.stream(
            key, "echo", input={"value": 2}, stream_mode=modes, version="v2"
        )
    ]
    return [old, new]


@scenario()
async def join_live(w: World) -> Any:
    """Joining a running run gives its later events and its end."""
    key = await w.thread()
    run = await w.sdk.runs.create(key, "steps", input={"count": 3, "delay": 5.0})
    await w.run_status(key, run["run_id"], "running")
    joined = pairs(await w.sse("GET", f"/threads/{key}/runs/{run['run_id']}/stream"))
    return joined[-1]


@scenario()
async def join_before_the_start(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=SOON)
    return pairs(await w.sse("GET", f"/threads/{key}/runs/{run['run_id']}/stream"))


@scenario()
async def join_by_mode(w: World) -> Any:
    modes: Any = ["values", "updates", "messages-tuple"]

    async def joined(mode: str) -> list[str]:
        key, value = await w.thread(), {**MESSAGES, "n": 2}
        run = await w.sdk.runs.create(
            key, "tokens", input=value, stream_mode=modes, after_seconds=SOON
        )
        path = f"/threads/{key}/runs/{run['run_id']}/stream?stream_mode={mode}"
        return [event for event, _ in pairs(await w.sse("GET", path))]

    wanted = ("updates", "values", "messages", "messages-tuple", '["values","updates"]', "debug")
    return await asyncio.gather(*(joined(mode) for mode in wanted))


@scenario()
async def join_ended(w: World) -> Any:
    key = await w.thread()
    seen = []
    for resumable in (False, True):
        run = await w.sdk.runs.create(key, "echo", input={"value": 1}, stream_resumable=resumable)
        await w.run_status(key, run["run_id"], "success")
        path = f"/threads/{key}/runs/{run['run_id']}/stream"
        seen.append(pairs(await w.sse("GET", path)))
    return seen


@scenario()
async def resume_from_the_start(w: World) -> Any:
    key = await w.thread()
    body = {
        "assistant_id": "steps",
        "input": {"count": 3, "delay": 0.02},
        "stream_mode": ["values", "updates"],
        "stream_resumable": True,
    }
    live = await w.sse("POST", f"/threads/{key}/runs/stream", body)
    run = live[0]["data"]["run_id"]
    path, start = f"/threads/{key}/runs/{run}/stream", {"Last-Event-ID": "0-0"}
    again = await w.sse("GET", path, headers=start)
    return [pairs(live), ["id" in e for e in live], again == live]


@scenario()
async def resume_in_the_middle(w: World) -> Any:
    """Resuming after any event neither loses nor repeats an event."""
    key = await w.thread()
    body = {
        "assistant_id": "tokens",
        "input": {"n": 6, "delay": 0.02, "mode": "custom"},
        "stream_mode": ["custom"],
        "stream_resumable": True,
    }
    live = await w.sse("POST", f"/threads/{key}/runs/stream", body)
    run = live[0]["data"]["run_id"]
    path = f"/threads/{key}/runs/{run}/stream"
    resumed = [
        pairs(await w.sse("GET", path, headers={"Last-Event-ID": event["id"]}))
        for event in live[:-1]
    ]
    return [pairs(live), [rest == pairs(live)[n + 1 :] for n, rest in enumerate(resumed)]]


@scenario()
async def resume_while_it_runs(w: World) -> Any:
    key = await w.thread()
    body = {
        "assistant_id": "tokens",
        "input": {"n": 8, "delay": 0.1, "mode": "custom"},
        "stream_mode": ["custom"],
        "stream_resumable": True,
    }
    first = await w.sse(
        "POST", f"/threads/{key}/runs/stream", body, stop=lambda e: e["data"].get("i") == 2
    )
    run = first[0]["data"]["run_id"]
    headers = {"Last-Event-ID": first[-1]["id"]}
    rest = await w.sse("GET", f"/threads/{key}/runs/{run}/stream", headers=headers)
    return [pairs(first), pairs(rest)]


@scenario()
async def events_of_a_run_that_is_not_resumable_have_no_ids(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "echo", "input": {"value": 1}}
    live = await w.sse("POST", f"/threads/{key}/runs/stream", body)
    return ["id" in event for event in live]


@scenario()
async def two_listeners(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "steps", input={"count": 2}, after_seconds=SOON)
    path = f"/threads/{key}/runs/{run['run_id']}/stream"
    both = await asyncio.gather(w.sse("GET", path), w.sse("GET", path))
    return [pairs(events) for events in both]


@scenario()
async def disconnect_continues_the_run(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "steps", "input": {"count": 2, "delay": 0.3}}
    await w.sse("POST", f"/threads/{key}/runs/stream", body, stop=lambda e: True)
    run = (await w.sdk.runs.list(key))[0]
    status = await w.run_status(key, run["run_id"], "success", "error", "interrupted")
    return [status, (await w.sdk.threads.get_state(key))["values"]]


@scenario()
async def disconnect_cancels_the_run(w: World) -> Any:
    key = await w.thread()
    body = {
        "assistant_id": "steps",
        "input": {"count": 30, "delay": 2.0},
        "on_disconnect": "cancel",
    }
    await w.sse("POST", f"/threads/{key}/runs/stream", body, stop=lambda e: e["event"] == "values")
    run = (await w.sdk.runs.list(key))[0]
    return await w.run_status(key, run["run_id"], "success", "error", "interrupted")


@scenario()
async def disconnect_of_a_join_cancels_the_run(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "steps", input={"count": 30, "delay": 2.0})
    path = f"/threads/{key}/runs/{run['run_id']}/stream?cancel_on_disconnect=true"
    await w.sse("GET", path, stop=lambda e: e["event"] == "values")
    return await w.run_status(key, run["run_id"], "success", "error", "interrupted")


@scenario()
async def long_token_stream(w: World) -> Any:
    found = await streamed(w, "tokens", {**MESSAGES, "n": 400}, stream_mode="messages-tuple")
    texts = [data[0]["content"] for event, data in found if event == "messages"]
    return [len(texts), "".join(texts), found[0], found[-1][0]]


@scenario()
async def unicode_and_line_ends(w: World) -> Any:
    return await streamed(w, "echo", {"value": "ß\n\r\n\u2028\u0000 data: x\n\nevent: y 🧵"})


async def resumable(w: World) -> tuple[str, list[dict[str, Any]]]:
    """Return the stream path of an ended run, and the events that it sent live."""
    key = await w.thread()
    body = {
        "assistant_id": "tokens",
        "input": {"n": 3, "delay": 0.02, "mode": "custom"},
        "stream_mode": ["custom"],
        "stream_resumable": True,
    }
    live = await w.sse("POST", f"/threads/{key}/runs/stream", body)
    return f"/threads/{key}/runs/{live[0]['data']['run_id']}/stream", live


@scenario()
async def resume_from_minus_one(w: World) -> Any:
    """Some clients send -1 to get all events."""
    path, live = await resumable(w)
    again = await w.sse("GET", path, headers={"Last-Event-ID": "-1"})
    return [pairs(again), again == live]


@scenario()
async def resume_after_the_end(w: World) -> Any:
    path, live = await resumable(w)
    return await w.sse("GET", path, headers={"Last-Event-ID": live[-1]["id"]})


@scenario()
async def resume_with_a_mode(w: World) -> Any:
    path, _ = await resumable(w)
    headers = {"Last-Event-ID": "0-0"}
    modes = ("custom", "values", "metadata")
    return [
        pairs(await w.sse("GET", f"{path}?stream_mode={mode}", headers=headers)) for mode in modes
    ]
