"""State of a thread: reading, writing, history, and streams of a thread."""

from __future__ import annotations

import asyncio
from typing import Any

from ..registry import scenario
from ..world import World
from .assistants import NOWHERE


async def make_steps(w: World) -> tuple[str, list[dict[str, Any]]]:
    """Create a thread with five checkpoints; return it and its history, newest first."""
    key = await w.thread()
    await w.sdk.runs.wait(key, "steps", input={"count": 3})
    history = await w.sdk.threads.get_history(key, limit=50)
    return key, [dict(state) for state in history]


def brief(states: Any) -> Any:
    """Reduce states to step, source, next and values."""
    return [
        [s["metadata"]["step"], s["metadata"]["source"], s["next"], s["values"]] for s in states
    ]


@scenario()
async def of_a_new_thread(w: World) -> Any:
    key = await w.thread()
    return [
        await w.call("GET", f"/threads/{key}/state"),
        await w.call("GET", f"/threads/{key}/history"),
        await w.call("POST", f"/threads/{key}/history", {"limit": 5}),
    ]


@scenario()
async def after_a_run(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": {"a": [1, None, 2.5, "é"]}})
    return [await w.sdk.threads.get_state(key), await w.sdk.threads.get(key)]


@scenario()
async def with_messages(w: World) -> Any:
    key = await w.thread()
    messages = [{"role": "user", "content": "hi", "id": "m1"}]
    await w.sdk.runs.wait(key, "echo", input={"messages": messages})
    return (await w.sdk.threads.get_state(key))["values"]


@scenario()
async def refused(w: World) -> Any:
    return [
        await w.call("GET", f"/threads/{NOWHERE}/state"),
        await w.call("GET", "/threads/nope/state"),
        await w.call("GET", f"/threads/{NOWHERE}/history"),
        await w.call("GET", "/threads/nope/history"),
        await w.call("POST", f"/threads/{NOWHERE}/state", {"values": {}}),
        await w.call("POST", "/threads/nope/state", {"values": {}}),
        await w.call("GET", f"/threads/{NOWHERE}/state/{NOWHERE}"),
        await w.call("POST", f"/threads/{NOWHERE}/state/checkpoint", {"checkpoint": {}}),
    ]


@scenario()
async def interrupted(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "interrupt", input={"questions": ["one", "two"]})
    return [await w.sdk.threads.get_state(key), await w.sdk.threads.get(key)]


@scenario()
async def of_subgraphs(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "subgraph", input={"topic": "moss"})
    outside = await w.sdk.threads.get_state(key)
    inside = await w.sdk.threads.get_state(key, subgraphs=True)
    child = inside["tasks"][0]["state"]["checkpoint"]
    seen = await w.sdk.threads.get_state(key, checkpoint=child)
    history = await w.sdk.threads.get_history(key, checkpoint=child, limit=10)
    return [outside, inside, seen, history]


@scenario()
async def update_in_a_subgraph(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "subgraph", input={"topic": "moss"})
    inside = await w.sdk.threads.get_state(key, subgraphs=True)
    child = inside["tasks"][0]["state"]["checkpoint"]
    await w.sdk.threads.update_state(key, {"draft": "about ferns"}, checkpoint=child)
    after = await w.sdk.threads.get_state(key, subgraphs=True)
    return after["tasks"][0]["state"]["values"]


@scenario()
async def update(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": 1})
    posted = await w.call("POST", f"/threads/{key}/state", {"values": {"value": 2}})
    return [posted, await w.sdk.threads.get_state(key), await w.sdk.threads.get(key)]


@scenario()
async def update_as_node(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "interrupt", input={"questions": ["q"]})
    await w.sdk.threads.update_state(key, {"answers": ["forged"]}, as_node="ask")
    before = await w.sdk.threads.get_state(key)
    row = await w.sdk.threads.get(key)
    ended = await w.sdk.runs.wait(key, "interrupt", input=None)
    return [before["next"], before["values"], row["status"], row["interrupts"], ended]


@scenario()
async def update_with_null_values(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "interrupt", input={})
    posted = await w.call("POST", f"/threads/{key}/state", {"values": None, "as_node": "__end__"})
    state = await w.sdk.threads.get_state(key)
    return [posted["status"], state["next"], (await w.sdk.threads.get(key))["status"]]


@scenario()
async def update_refused(w: World) -> Any:
    bare, used = await w.thread(), await w.thread()
    await w.sdk.runs.wait(used, "echo", input={"value": 1})
    path = f"/threads/{used}/state"
    answers = [
        await w.call("POST", f"/threads/{bare}/state", {"values": {"value": 1}}),
        await w.call("POST", path, {"values": {"value": 1}, "as_node": "nobody"}),
        await w.call("POST", path, {"values": "text"}),
        await w.call("POST", path, {"values": {}, "checkpoint": {"checkpoint_id": "nope"}}),
        await w.call("POST", path, {"values": {}, "checkpoint_id": 7}),
        await w.call("POST", path, []),
    ]
    return [answer["status"] if answer["status"] == 500 else answer for answer in answers]


@scenario()
async def update_while_running(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "sleeper", input={"seconds": 20})
    await w.run_status(key, run["run_id"], "running")
    answer = await w.call("POST", f"/threads/{key}/state", {"values": {"slept": 1}})
    await w.sdk.runs.cancel(key, run["run_id"], wait=True)
    return answer["status"]  # stock's message contains the Python representation of the run


@scenario()
async def at_a_checkpoint(w: World) -> Any:
    key, history = await make_steps(w)
    middle = history[2]["checkpoint"]
    return [
        await w.sdk.threads.get_state(key, checkpoint_id=middle["checkpoint_id"]),
        await w.sdk.threads.get_state(key, checkpoint=middle),
        await w.call("GET", f"/threads/{key}/state/{NOWHERE}"),
        await w.call("POST", f"/threads/{key}/state/checkpoint", {}),
    ]


@scenario()
async def update_at_a_checkpoint_forks(w: World) -> Any:
    key, history = await make_steps(w)
    middle = history[2]["checkpoint"]
    posted = await w.sdk.threads.update_state(key, {"done": [77]}, checkpoint=middle)
    now = await w.sdk.threads.get_state(key)
    return [now["values"], now["next"], now["parent_checkpoint"] == middle, sorted(posted)]


@scenario()
async def run_from_a_checkpoint(w: World) -> Any:
    key, history = await make_steps(w)
    middle = history[2]["checkpoint"]
    by_object = await w.sdk.runs.wait(key, "steps", checkpoint=middle)
    by_id = await w.sdk.runs.wait(key, "steps", checkpoint_id=middle["checkpoint_id"])
    longer = await w.sdk.threads.get_history(key, limit=50)
    return [by_object, by_id, brief(longer)]


@scenario()
async def run_from_a_bad_checkpoint(w: World) -> Any:
    key, _ = await make_steps(w)
    path, body = f"/threads/{key}/runs/wait", {"assistant_id": "steps", "input": {"count": 1}}
    return [
        await w.call("POST", path, {**body, "checkpoint_id": "nope"}),
        await w.call("POST", path, {**body, "checkpoint": "nope"}),
    ]


@scenario()
async def history_whole(w: World) -> Any:
    _, history = await make_steps(w)
    return history


@scenario()
async def history_in_pages(w: World) -> Any:
    key, history = await make_steps(w)
    before = history[1]["checkpoint"]
    path = f"/threads/{key}/history"
    second = await w.call("GET", f"{path}?limit=2&before={before['checkpoint_id']}")
    default = await w.call("GET", path)
    refused = await w.call("POST", path, {"limit": 2, "before": before["checkpoint_id"]})
    return [brief(second["body"]), brief(default["body"]), refused]


@scenario()
async def history_before_an_object(w: World) -> Any:
    """`before` may be a checkpoint object, as the SDK sends it, or an id."""
    key, history = await make_steps(w)
    body = {"limit": 2, "before": history[1]["checkpoint"]}
    answer = await w.call("POST", f"/threads/{key}/history", body)
    return brief(answer["body"]) if answer["status"] == 200 else answer["status"]


@scenario()
async def history_by_metadata(w: World) -> Any:
    key, _ = await make_steps(w)
    return [
        brief(await w.sdk.threads.get_history(key, limit=50, metadata={"step": 1})),
        brief(await w.sdk.threads.get_history(key, limit=50, metadata={"source": "input"})),
        brief(await w.sdk.threads.get_history(key, limit=50, metadata={"nobody": 1})),
    ]


@scenario()
async def history_of_one_run(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": 1})
    run = await w.sdk.runs.create(key, "echo", input={"value": 2}, metadata={"mine": "yes"})
    await w.sdk.runs.join(key, run["run_id"])
    by_run = await w.sdk.threads.get_history(key, limit=50, metadata={"run_id": run["run_id"]})
    by_own = await w.sdk.threads.get_history(key, limit=50, metadata={"mine": "yes"})
    return [brief(by_run), brief(by_own)]


@scenario()
async def history_selected(w: World) -> Any:
    key, _ = await make_steps(w)
    path = f"/threads/{key}/history"
    selects: list[Any] = [["values.done"], ["next", "values"], ["next"], ["values.none"], ["nope"]]
    seen = []
    for select in selects:
        got = await w.call("GET", path, params={"select": select, "limit": 3})
        posted = await w.call("POST", path, {"select": select, "limit": 3})
        seen.append([got["status"], got["body"], posted["status"], posted["body"]])
    return seen


@scenario()
async def history_refused(w: World) -> Any:
    key = await w.thread()
    path = f"/threads/{key}/history"
    return [
        await w.call("GET", f"{path}?limit=many"),
        await w.call("POST", path, {"limit": "many"}),
        await w.call("POST", path, {"limit": -1}),
        await w.call("POST", path, {"metadata": "x"}),
    ]


@scenario()
async def checkpoint_metadata(w: World) -> Any:
    """Checkpoints of a run contain its own metadata and its configurable."""
    key = await w.thread()
    config = {"configurable": {"greeting": "moin"}, "metadata": {"from": "config"}}
    await w.sdk.runs.wait(key, "configured", input={}, config=config, metadata={"from_run": 1})
    return [s["metadata"] for s in await w.sdk.threads.get_history(key, limit=9)]


@scenario()
async def checkpoint_metadata_of_a_place(w: World) -> Any:
    """Metadata of the request that looks like the place of a checkpoint or task."""
    key, history = await make_steps(w)
    start = history[2]["checkpoint"]["checkpoint_id"]
    mine = {"checkpoint_id": "mine", "langgraph_node": "mine", "kept": "mine"}
    await w.sdk.runs.wait(key, "steps", checkpoint_id=start, metadata=mine)
    [newest] = await w.sdk.threads.get_history(key, limit=1)
    return {"metadata": newest["metadata"]}


@scenario()
async def failed_task(w: World) -> Any:
    key = await w.thread()
    body = {"message": "deliberate"}
    await w.sdk.runs.wait(key, "failing", input=body, raise_error=False)
    return [await w.sdk.threads.get_state(key), await w.sdk.threads.get(key)]


@scenario()
async def thread_stream(w: World) -> Any:
    """The stream of a thread contains every run of the thread, including later runs."""
    key = await w.thread()
    seen = []
    async with w.events("GET", f"/threads/{key}/stream") as stream:
        for value in (1, 2):
            await w.sdk.runs.create(key, "echo", input={"value": value})
            async for event in stream:
                seen.append(event)
                if event["data"].get("status") == "run_done":
                    break
    return [[e["event"], e["data"], "id" in e] for e in seen]


@scenario()
async def thread_stream_lifecycle(w: World) -> Any:
    key = await w.thread()
    async with w.events("GET", f"/threads/{key}/stream?stream_modes=lifecycle") as stream:
        run = await w.sdk.runs.create(key, "echo", input={"value": 1})
        seen = [await anext(stream), await anext(stream)]
    return [run["run_id"], [[e["event"], e["data"]] for e in seen]]


@scenario()
async def thread_stream_of_state_updates(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": 1})
    async with w.events("GET", f"/threads/{key}/stream?stream_modes=state_update") as stream:
        first = asyncio.ensure_future(anext(stream))
        # Stock subscribes when its body is first read.
        while not first.done():
            await w.sdk.threads.update_state(key, {"value": 2})
            await asyncio.wait({first}, timeout=1)
        event = await first
    return [event["event"], sorted(event["data"])]


@scenario()
async def thread_stream_replays(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "steps", "input": {"count": 2}, "stream_resumable": True}
    await w.call("POST", f"/threads/{key}/runs/wait", body)
    seen = await w.sse(
        "GET",
        f"/threads/{key}/stream",
        headers={"Last-Event-ID": "-"},
        stop=lambda e: e["data"].get("status") == "run_done",
    )
    return [[e["event"], e["data"]] for e in seen]


@scenario()
async def thread_stream_refused(w: World) -> Any:
    key = await w.thread()
    path = f"/threads/{key}/stream"
    return [
        await w.call("GET", f"{path}?stream_modes=nonsense"),
        await w.call("GET", path, headers={"Last-Event-ID": "yesterday"}),
        await w.call("GET", "/threads/nope/stream"),
    ]


@scenario()
async def thread_stream_resumes_in_the_middle(w: World) -> Any:
    key = await w.thread()
    value = {"n": 4, "delay": 0.02, "mode": "custom"}
    body = {
        "assistant_id": "tokens",
        "input": value,
        "stream_mode": ["custom"],
        "stream_resumable": True,
    }
    live = await w.sse("POST", f"/threads/{key}/runs/stream", body)
    rest = await w.sse(
        "GET",
        f"/threads/{key}/stream",
        headers={"Last-Event-ID": live[2]["id"]},
        stop=lambda e: e["data"].get("status") == "run_done",
    )
    return [[e["event"], e["data"]] for e in rest]
