"""The event stream of a thread (protocol 2): commands, server-sent events, WebSocket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import connect

from ..registry import scenario
from ..world import World
from .streams import MESSAGES

EVERYTHING = ["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks"]


def run_ended(event: dict[str, Any]) -> bool:
    """Return whether a root lifecycle event reports the end of a run."""
    body = event["data"] if event.get("event") else event
    params = body.get("params", {})
    return (
        body.get("method") == "lifecycle"
        and not params.get("namespace")
        and params["data"]["event"] in ("completed", "failed", "interrupted")
    )


async def command(w: World, thread: str, method: str, **params: Any) -> Any:
    body = {"id": 1, "method": method, "params": params}
    return await w.call("POST", f"/threads/{thread}/commands", body)


async def events_until_end(w: World, thread: str, channels: list[str], **body: Any) -> list[Any]:
    """Return the data of all events of the thread until one of its runs has ended."""
    request = {"channels": channels, **body}
    path = f"/threads/{thread}/stream/events"
    events = await w.sse("POST", path, request, stop=run_ended)
    return [event["data"] for event in events]


async def run_events(w: World, graph: str, value: Any, channels: list[str], **body: Any) -> Any:
    """Start a run by command on a new thread and return the events of its stream.

    The stream is opened first: only open streams receive an error.
    """
    thread, request = w.new_id(), {"channels": [*channels, "lifecycle"], **body}
    received = []
    async with w.events("POST", f"/threads/{thread}/stream/events", request) as stream:
        started = await command(w, thread, "run.start", assistant_id=graph, input=value)
        async for event in stream:
            received.append(event["data"])
            if run_ended(event):
                break
    return [started, received]


@scenario()
async def lifecycle(w: World) -> Any:
    return await run_events(w, "echo", {"value": 1}, [])


@scenario()
async def values(w: World) -> Any:
    return await run_events(w, "steps", {"count": 2}, ["values"])


@scenario()
async def updates(w: World) -> Any:
    return await run_events(w, "steps", {"count": 2}, ["updates"])


@scenario()
async def messages(w: World) -> Any:
    return await run_events(w, "tokens", {**MESSAGES, "n": 3}, ["messages"])


@scenario()
async def custom(w: World) -> Any:
    return await run_events(w, "tokens", {"n": 3, "mode": "custom"}, ["custom"])


@scenario()
async def tasks(w: World) -> Any:
    return await run_events(w, "steps", {"count": 1}, ["tasks"])


@scenario()
async def checkpoints(w: World) -> Any:
    return await run_events(w, "steps", {"count": 1}, ["checkpoints"])


@scenario()
async def everything(w: World) -> Any:
    return await run_events(w, "echo", {"value": 1}, EVERYTHING)


@scenario()
async def failing_run(w: World) -> Any:
    return await run_events(w, "failing", {"message": "no good"}, ["values"])


@scenario()
async def subgraphs(w: World) -> Any:
    return await run_events(w, "subgraph", {"topic": "moss"}, ["values", "input"])


@scenario()
async def subgraphs_to_a_depth(w: World) -> Any:
    return await run_events(w, "subgraph", {"topic": "moss"}, ["values"], namespaces=[[]], depth=0)


@scenario()
async def since(w: World) -> Any:
    """A client that reconnects sends the last sequence number and gets the later events."""
    thread = w.new_id()
    await command(w, thread, "run.start", assistant_id="steps", input={"count": 2})
    whole = await events_until_end(w, thread, ["values", "lifecycle"])
    rest = await events_until_end(w, thread, ["values", "lifecycle"], since=whole[2]["seq"])
    return [whole, rest == whole[3:]]


@scenario()
async def replay_has_the_same_ids(w: World) -> Any:
    thread = w.new_id()
    await command(w, thread, "run.start", assistant_id="echo", input={"value": 1})
    first = await events_until_end(w, thread, EVERYTHING)
    again = await events_until_end(w, thread, EVERYTHING)
    ids = [[event["event_id"] for event in events] for events in (first, again)]
    return [ids[0] == ids[1], len(ids[0])]


@scenario()
async def two_runs(w: World) -> Any:
    thread = w.new_id()
    await command(w, thread, "run.start", assistant_id="echo", input={"value": 1})
    first = await events_until_end(w, thread, ["lifecycle"])
    await command(w, thread, "run.start", assistant_id="echo", input={"value": 2})
    ended = 0

    def second(event: dict[str, Any]) -> bool:
        nonlocal ended
        ended += run_ended(event)
        return ended == 2

    path, body = f"/threads/{thread}/stream/events", {"channels": ["lifecycle"]}
    both = await w.sse("POST", path, body, stop=second)
    return [first, [event["data"] for event in both]]


@scenario()
async def respond_to_an_interrupt(w: World) -> Any:
    thread = w.new_id()
    value = {"questions": ["q"]}
    await command(w, thread, "run.start", assistant_id="interrupt", input=value)
    asked = await events_until_end(w, thread, ["input", "lifecycle"])
    request = next(e for e in asked if e["method"] == "input.requested")
    number = request["params"]["data"]["interrupt_id"]
    wrong = await command(w, thread, "input.respond", interrupt_id="nobody", response="x")
    right = await command(
        w, thread, "input.respond", namespace=[], interrupt_id=number, response="yes"
    )
    row = await w.until(lambda: w.sdk.threads.get(thread), lambda row: row["status"] == "idle")
    return [asked, wrong, right, row["values"]]


@scenario()
async def fork_from_an_input(w: World) -> Any:
    thread = w.new_id()
    await command(w, thread, "run.start", assistant_id="echo", input={"value": 1})
    await w.until(lambda: w.sdk.threads.get(thread), lambda row: row["status"] == "idle")
    history = await w.sdk.threads.get_history(thread)
    begin = {"configurable": {"checkpoint_id": history[-1]["checkpoint"]["checkpoint_id"]}}
    forked = await command(
        w, thread, "run.start", assistant_id="echo", input={"value": 2}, config=begin
    )
    run = forked["body"]["result"]["run_id"]
    await w.until(lambda: w.sdk.runs.get(thread, run), lambda row: row["status"] == "success")
    row = await w.sdk.threads.get(thread)
    return [row["status"], row["values"]]


@scenario()
async def commands_refused(w: World) -> Any:
    thread = w.new_id()
    path = f"/threads/{thread}/commands"
    return [
        await command(w, thread, "no.such"),
        await command(w, thread, "run.start"),
        await command(w, thread, "run.start", assistant_id="no-such-graph"),
        await command(w, thread, "run.start", assistant_id="echo", config=5),
        await command(
            w,
            thread,
            "run.start",
            assistant_id="echo",
            config={"configurable": {"checkpoint_id": "nope"}},
        ),
        await command(w, thread, "input.respond"),
        await command(w, thread, "agent.getTree"),
        await command(w, "nope", "run.start", assistant_id="echo"),
        await w.call("POST", path, content=b"{"),
        await w.call("POST", path, {"method": "run.start"}),
        await w.call("POST", path, [1]),
    ]


@scenario()
async def streams_refused(w: World) -> Any:
    path = f"/threads/{w.new_id()}/stream/events"
    bodies: list[Any] = [{}, {"channels": []}, {"channels": ["nonsense"]}, {"channels": [1]}, [1]]
    answers = [await w.call("POST", path, body) for body in bodies]
    return [*answers, await w.call("POST", path, content=b"{")]


async def converse(
    w: World, thread: str, commands: list[dict[str, Any]], stop: Callable[[Any], bool]
) -> list[Any]:
    """Send commands over a WebSocket and return all answers and events until ``stop``."""
    url = w.url.replace("http", "ws", 1) + f"/threads/{thread}/stream/events"
    received = []
    async with connect(url) as socket:
        for number, sent in enumerate(commands):
            await socket.send(json.dumps({"id": number, **sent}))
        async for text in socket:
            received.append(json.loads(text))
            if stop(received[-1]):
                break
    return received


def settled(received: list[Any]) -> list[Any]:
    """Sort answers to commands first: they may overtake events, but never each other."""
    return sorted(received, key=lambda item: "method" in item)


@scenario()
async def websocket(w: World) -> Any:
    channels = {"channels": ["values", "lifecycle"]}
    commands = [
        {"method": "subscription.subscribe", "params": channels},
        {"method": "run.start", "params": {"assistant_id": "steps", "input": {"count": 2}}},
    ]
    return settled(await converse(w, w.new_id(), commands, run_ended))


@scenario()
async def websocket_refused(w: World) -> Any:
    commands: list[dict[str, Any]] = [
        {"method": "no.such"},
        {"method": 5},
        {"method": "subscription.subscribe", "params": {"channels": ["nonsense"]}},
        {"method": "subscription.unsubscribe", "params": {"subscription_id": "nobody"}},
        {"method": "agent.getTree"},
    ]
    return await converse(w, w.new_id(), commands, lambda received: received.get("id") == 4)


async def through_the_sdk(w: World, transport: Any) -> Any:
    stream = w.sdk.threads.stream(assistant_id="tokens", transport=transport)
    async with stream as thread:
        await thread.run.start(input={**MESSAGES, "n": 3})
        messages = [message async for message in thread.messages]
        texts = [await message.text for message in messages]
        output = await thread.output
    return [texts, sorted(output)]


@scenario()
async def sdk_over_sse(w: World) -> Any:
    return await through_the_sdk(w, "sse")


@scenario()
async def sdk_over_websocket(w: World) -> Any:
    return await through_the_sdk(w, "websocket")


@scenario()
async def sdk_responds_to_an_interrupt(w: World) -> Any:
    stream = w.sdk.threads.stream(assistant_id="interrupt")
    async with stream as thread:
        await thread.run.start(input={"questions": ["q"]})
        async for _ in thread.values:
            pass  # the number of values depends on when the stream was opened
        asked = list(thread.interrupts)
        await thread.run.respond("yes")
        output = await thread.output
    return [asked, output]
