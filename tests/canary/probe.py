"""The probe: starts our server in the environment of the interpreter, and really calls each operation.

    python -m tests.canary.probe

Prints a line of JSON for each area: its name, and the first line of its failure or null. Signatures tell
nothing of `**kwargs`, of the shape of what is yielded, or of what never happens, such as a cron that does not fire.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from websockets.asyncio.client import connect

from tests.conformance.receiver import Receiver
from tests.conformance.scenarios import a2a, events, mcp
from tests.conformance.scenarios.crons import OFTEN
from tests.conformance.servers import ROOT, Server, our_server, wait_ready
from tests.conformance.world import World, open_transport

# Seconds for one area; far more than any needs.
PATIENCE = 90.0
# Where the packages of the npm registry are.
JAVASCRIPT = Path(os.environ.get("CANARY_JAVASCRIPT", ROOT / "tests" / "javascript"))
# With encryption, of which later versions ask the runtime more.
SETTINGS = {
    "LANGGRAPH_AES_KEY": "0123456789abcdef",
    "LANGGRAPH_THREAD_TTL": '{"strategy": "delete", "default_ttl": 999, "sweep_interval_minutes": 0.02}',
}
RESUMED = {"FF_RESUME_DRAINED_RUNS": "true"}
Probe = Callable[[World], Awaitable[None]]
PROBES: dict[str, Probe] = {}


class Wrong(Exception):
    """The server has answered something else than it should."""


def probe(area: str) -> Callable[[Probe], Probe]:
    """Register a function that calls the operations of an area."""

    def register(function: Probe) -> Probe:
        PROBES[area] = function
        return function

    return register


def expect(is_so: object, seen: Any) -> None:
    """Check an answer.

    Raises:
        Wrong: `is_so` is false; the message has what was seen.
    """
    if not is_so:
        raise Wrong(str(seen)[:300])


async def call(w: World, method: str, path: str, body: Any = None, **options: Any) -> Any:
    """Call the server and return the body of its answer.

    Raises:
        Wrong: the status is not 2xx.
    """
    answer = await w.call(method, path, body, **options)
    expect(200 <= answer["status"] < 300, f"{method} {path}: {answer['status']} {answer['body']}")
    return answer["body"]


async def ran(w: World, graph: str = "steps", value: Any = None) -> str:
    """Return a thread with an ended run."""
    key = await w.thread()
    await w.sdk.runs.wait(key, graph, input=value or {"count": 3})
    return key


def is_newer(version: str) -> bool:
    """Return whether the installed langgraph-api is of this minor series or newer, with its prereleases."""
    from importlib.metadata import version as installed

    from packaging.version import Version

    return Version(installed("langgraph-api")).release >= Version(version).release


@probe("assistants")
async def assistants(w: World) -> None:
    made = await w.sdk.assistants.create("echo", name="probe", metadata={"m": 1})
    key = made["assistant_id"]
    await w.sdk.assistants.update(key, metadata={"m": 2})
    versions = await w.sdk.assistants.get_versions(key)
    expect(len(versions) == 2, versions)
    await w.sdk.assistants.set_latest(key, 1)
    found = await w.sdk.assistants.search(metadata={"m": 1})
    expect(key in {each["assistant_id"] for each in found}, found)
    expect(await w.sdk.assistants.get_schemas(key), "no schemas")
    expect(await w.sdk.assistants.get_graph(key), "no graph")
    await w.sdk.assistants.delete(key)


@probe("runs")
async def runs(w: World) -> None:
    key = await w.thread()
    expect((await w.sdk.runs.wait(key, "echo", input={"value": 7}))["value"] == 7, "no value")
    path = f"/threads/{key}/runs/stream"
    seen = await w.sse("POST", path, {"assistant_id": "steps", "input": {"count": 2}})
    expect({"metadata", "values"} <= {each["event"] for each in seen}, seen)
    answer = await w.sdk.runs.wait(None, "echo", input={"value": 8})
    expect(answer["value"] == 8, answer)
    batch = [{"assistant_id": "echo", "input": {"value": n}} for n in range(3)]
    expect(len(await call(w, "POST", "/runs/batch", batch)) == 3, "no batch")


@probe("resumable streams")
async def resumable(w: World) -> None:
    key = await w.thread()
    body = {"assistant_id": "steps", "input": {"count": 3}, "stream_resumable": True}
    run = await call(w, "POST", f"/threads/{key}/runs", body)
    await w.run_status(key, run["run_id"], "success")
    path = f"/threads/{key}/runs/{run['run_id']}/stream"
    seen = await w.sse("GET", path, headers={"last-event-id": "-1"})
    expect("values" in {each["event"] for each in seen}, seen)


@probe("cancel")
async def cancel(w: World) -> None:
    key = await w.thread()
    record = w.scratch / w.new_id()
    value = {"seconds": 60, "record": str(record)}
    run = await w.sdk.runs.create(key, "sleeper", input=value)
    await w.written(record)
    await w.sdk.runs.cancel(key, run["run_id"], wait=True)
    found = await w.sdk.runs.get(key, run["run_id"])
    expect(found["status"] == "interrupted", found["status"])
    if is_newer("0.17"):
        expect("cancel" in (found["cancel_reason"] or ""), found["cancel_reason"])


@probe("search")
async def search(w: World) -> None:
    mark = w.new_id()
    for number in range(3):
        await w.thread(mark=mark, number=number)
    asked: dict[str, Any] = {"metadata": {"mark": mark}, "select": ["thread_id", "metadata"]}
    if is_newer("0.17"):
        asked["exclude_metadata"] = [{"number": 1}]
    found = await call(w, "POST", "/threads/search", asked)
    expected = {0, 2} if is_newer("0.17") else {0, 1, 2}
    expect({each["metadata"]["number"] for each in found} == expected, found)
    del asked["select"]
    expect(await call(w, "POST", "/threads/count", asked) == len(expected), "another count")


@probe("state and history")
async def history(w: World) -> None:
    key = await ran(w)
    state = await w.sdk.threads.get_state(key)
    await w.sdk.threads.update_state(key, {"count": 1}, as_node="step")
    found = await w.sdk.threads.get_history(key, limit=20)
    expect(len(found) > 3 and state["values"]["done"], found)
    if is_newer("0.17"):
        some = await call(w, "GET", f"/threads/{key}/history?select=values.done&limit=2")
        expect([list(each["values"]) for each in some] == [["done"]] * 2, some)
        expect(await call(w, "POST", f"/threads/{key}/history", {"select": ["next"]}), "none")


@probe("storage")
async def storage(w: World) -> None:
    found = await call(w, "GET", f"/threads/{await ran(w)}/storage")
    expect(found["total_bytes"] > 0 and found["checkpoints"]["count"] > 3, found)


@probe("copy and prune")
async def copy(w: World) -> None:
    key = await ran(w)
    copied = await w.sdk.threads.copy(key)
    state = await w.sdk.threads.get_state(copied["thread_id"])
    expect(state["values"]["done"], state)
    body = {"thread_ids": [key], "strategy": "keep_latest"}
    await call(w, "POST", "/threads/prune", body)
    expect(len(await w.sdk.threads.get_history(key, limit=20)) == 1, "nothing is pruned")


@probe("time to live")
async def ttl(w: World) -> None:
    made = await call(w, "POST", "/threads", {"ttl": {"strategy": "delete", "ttl": 0.001}})
    path = f"/threads/{made['thread_id']}"

    async def status() -> int:
        return int((await w.call("GET", path))["status"])

    await w.until(status, lambda found: found == 404)


@probe("store")
async def store(w: World) -> None:
    place = ["probe", w.new_id()]
    await w.sdk.store.put_item(place, "key", {"kind": "a", "n": 1})
    expect((await w.sdk.store.get_item(place, "key"))["value"]["n"] == 1, "no item")
    found = await w.sdk.store.search_items(place, filter={"kind": "a"})
    expect(len(found["items"]) == 1, found)
    expect((await w.sdk.store.list_namespaces(prefix=place))["namespaces"] == [place], "none")
    await w.sdk.store.delete_item(place, "key")


@probe("crons")
async def crons(w: World) -> None:
    key = await w.thread()
    made = await w.sdk.crons.create_for_thread(key, "echo", schedule=OFTEN, input={"value": 1})

    def fired(found: Any) -> bool:
        return sum(each["status"] == "success" for each in found) >= 2

    await w.until(lambda: w.sdk.runs.list(key), fired)
    expect(await w.sdk.crons.search(thread_id=key), "no cron is found")
    await w.sdk.crons.delete(made["cron_id"])


@probe("event stream")
async def event_stream(w: World) -> None:
    channels = ["values", "messages", "tools", "tasks", "custom", "updates"]
    started, seen = await events.run_events(w, "steps", {"count": 2}, channels)
    expect(started["body"]["type"] == "success", started)
    expect({"values", "lifecycle"} <= {each["method"] for each in seen}, seen)


@probe("WebSocket")
async def websocket(w: World) -> None:
    thread = w.new_id()
    url = f"{w.url.replace('http', 'ws', 1)}/threads/{thread}/stream/events"
    async with connect(url) as socket:
        run = {"assistant_id": "echo", "input": {"value": 1}}
        subscribe = {"channels": ["values", "lifecycle"]}
        for number, (method, params) in enumerate(
            (("subscription.subscribe", subscribe), ("run.start", run))
        ):
            await socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while not events.run_ended(seen := json.loads(await socket.recv())):
            expect(seen["type"] != "error", seen)
        expect(seen["params"]["data"]["event"] == "completed", seen)


@probe("interrupts")
async def interrupts(w: World) -> None:
    thread = await w.thread()
    await w.sdk.runs.wait(thread, "interrupt", input={"questions": ["q"]})
    [[asked]] = (await w.sdk.threads.get(thread))["interrupts"].values()
    answer = {"interrupt_id": asked["id"], "response": "yes"}
    responded = await events.command(w, thread, "input.respond", **answer)
    expect(responded["body"]["type"] == "success", responded)
    await w.until(lambda: w.sdk.threads.get(thread), lambda row: row["status"] == "idle")


@probe("MCP")
async def model_context(w: World) -> None:
    params = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "probe", "version": "1"},
    }
    answer = await mcp.rpc(w, "initialize", params)
    expect("serverInfo" in answer["body"]["result"], answer)
    name = await mcp.tool(w, "echo")
    listed = await mcp.rpc(w, "tools/list")
    expect("echo" in {each["name"] for each in listed["body"]["result"]["tools"]}, listed)
    called = await mcp.rpc(w, "tools/call", {"name": name, "arguments": {"value": "probe 7"}})
    expect("probe 7" in json.dumps(called["body"]["result"]["content"]), called)


@probe("A2A")
async def agents(w: World) -> None:
    sent = await a2a.rpc(w, "message/send", a2a.message("hello"))
    expect("result" in sent["body"], sent)
    await call(w, "GET", "/.well-known/agent-card.json?assistant_id=" + a2a.AGENT.split("/")[-1])


@probe("kill switch")
async def kill_switch(w: World) -> None:
    answer = await w.call("POST", "/operator/runs/cancel", {})
    expect(answer["status"] == 404, answer)


@probe("webhooks")
async def webhooks(w: World) -> None:
    key, mark = await w.thread(), w.new_id()
    await w.sdk.runs.wait(key, "echo", input={"value": 1}, webhook=w.receiver.url(mark))
    delivered = await w.receiver.delivery(mark)
    expect(delivered["status"] == "success", delivered)


@probe("SDK's streams")
async def sdk_streams(w: World) -> None:
    if not hasattr(w.sdk.threads, "stream"):
        raise Wrong("the installed SDK has none")
    key = await w.thread()
    async with w.sdk.threads.stream(thread_id=key, assistant_id="steps") as thread:
        await thread.run.start(input={"count": 2})
        values = [each async for each in thread.values]
    expect(values and values[-1]["done"], values)


SDK_SCRIPT = """
import { Client } from "@langchain/langgraph-sdk";
const client = new Client({ apiUrl: process.argv[1] });
const { thread_id } = await client.threads.create();
const seen = client.runs.stream(thread_id, "steps", { input: { count: 2 }, streamMode: ["values"] });
for await (const event of seen) if (event.event === "error") throw new Error(JSON.stringify(event));
const { values } = await client.threads.getState(thread_id);
if (values.done.length !== 2) throw new Error(JSON.stringify(values));
"""


@probe("JavaScript SDK")
async def javascript(w: World) -> None:
    await node(["--input-type=module", "--eval", SDK_SCRIPT, w.url])


@probe("React hook")
async def react(w: World) -> None:
    said = {"submit": {"messages": [{"type": "human", "content": "hi"}], "n": 3}}
    thread = await w.thread()

    def is_answered(line: bytes) -> bool:
        shown: dict[str, Any] = json.loads(line)
        return not shown["loading"] and any(each["type"] == "ai" for each in shown["messages"])

    await node(["hook.mjs", w.url, "tokens", thread], json.dumps(said), is_answered)


async def node(
    arguments: list[str], said: str = "", until: Callable[[bytes], bool] | None = None
) -> None:
    """Run Node where the packages of the npm registry are.

    Args:
        arguments: Those of Node.
        said: A line for its input.
        until: Whether a line of its output is the one that ends it. Default: it ends itself.

    Raises:
        Wrong: it has failed.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "node", *arguments, cwd=JAVASCRIPT, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(f"{said}\n".encode())
    try:
        while until is not None and (line := await process.stdout.readline()):
            if until(line):
                return
        wrong = [each for each in (await process.stderr.read()).decode().splitlines() if each]
        named = [each for each in wrong if "Error" in each] or wrong
        expect(await process.wait() == 0 and until is None, (named or ["it has ended"])[0])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def world(server: Server, scratch: Path) -> AsyncIterator[World]:
    receiver = Receiver()
    serving = asyncio.create_task(receiver.serve())
    try:
        async with open_transport() as transport:
            yield World(server.url, receiver, transport, scratch)
    finally:
        receiver.stop()
        await serving


async def drained(scratch: Path, database_url: str) -> None:
    """A server that stops ends only the step of its run; the next one goes on from there."""
    gate, record = scratch / "gate", scratch / "record"
    gate.write_text("1")
    value = {"count": 3, "gate": str(gate), "record": str(record)}
    with our_server(scratch, "first", database_url, None, **RESUMED) as server:
        await asyncio.to_thread(wait_ready, server)
        async with world(server, scratch) as w:
            key = await w.thread()
            run = await w.sdk.runs.create(key, "steps", input=value)
            await w.until(lambda: asyncio.to_thread(_lines, record), lambda seen: len(seen) >= 2)
            server.process.send_signal(signal.SIGTERM)
            # The second step is under way.
            await asyncio.sleep(1)
            gate.write_text("2")
        await asyncio.to_thread(server.process.wait, PATIENCE)
    gate.write_text("9")
    with our_server(scratch, "second", database_url, None, **RESUMED) as server:
        await asyncio.to_thread(wait_ready, server)
        async with world(server, scratch) as w:
            await w.run_status(key, run["run_id"], "success")
    steps = _lines(record)
    expect(len(steps) == len(set(steps)), f"steps have begun twice: {steps}")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def examine(area: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run the probe of an area, and print its line."""
    problem = None
    try:
        async with asyncio.timeout(PATIENCE):
            await work()
    except Exception as error:  # noqa: BLE001 - whatever fails is the finding
        lines = traceback.format_exception_only(error)
        problem = lines[-1].strip().splitlines()[0][:300] or type(error).__name__
    print(json.dumps([area, problem]), flush=True)


async def main() -> None:
    """Probe everything."""
    with TemporaryDirectory() as place:
        scratch = Path(place)
        url = f"sqlite:///{scratch / 'probe.db'}"
        with our_server(scratch, "probe", url, None, **SETTINGS) as server:
            try:
                await asyncio.to_thread(wait_ready, server)
            except Exception as error:  # noqa: BLE001 - reported as the start's failure
                print(json.dumps(["start", _cause(str(error))]), flush=True)
                return
            print(json.dumps(["start", None]), flush=True)
            async with world(server, scratch) as w:
                for area, work in PROBES.items():
                    await examine(area, lambda work=work: work(w))  # type: ignore[misc]
        folder = scratch / "drained"
        folder.mkdir()
        url = f"sqlite:///{folder / 'drained.db'}"
        if is_newer("0.17"):
            await examine("stop and go on", lambda: drained(folder, url))


def _cause(text: str) -> str:
    """Return the line of a start's log that names the cause."""
    lines = [each for each in text.splitlines() if each.strip()]
    named = [each for each in lines if "is not the part" in each or "Error" in each]
    return (named or lines)[-1][:300]


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(0)
