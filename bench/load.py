"""Client actions. Each one checks the answer: the time of a wrong answer means nothing.

All times are in seconds.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import orjson

from bench.client import Client
from bench.servers import Server


class WrongAnswer(Exception):
    """The server answered with status 2xx but the wrong content."""


@dataclass(frozen=True)
class Burst:
    """The result of `hammer`."""

    runs: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.runs / self.seconds

    @property
    def cpu_a_run(self) -> float:
        return self.cpu_seconds / self.runs


async def new_thread(client: Client) -> str:
    thread_id: str = (await client.json("POST", "/threads", {}))["thread_id"]
    return thread_id


async def echo(client: Client, prefix: str = "", graph: str = "echo", **metadata: str) -> float:
    """Run the echo graph to its end through `prefix`/runs/wait ("" is stateless)."""
    text = f"hello {time.perf_counter_ns()}"
    body = {
        "assistant_id": graph,
        "input": {"messages": [{"role": "user", "content": text}]},
        "metadata": metadata,
    }
    begun = time.perf_counter()
    values = await client.json("POST", f"{prefix}/runs/wait", body)
    elapsed = time.perf_counter() - begun
    if "messages" not in values or values["messages"][-1]["content"] != f"echo: {text}":
        raise WrongAnswer(f"echo answered {values}")
    return elapsed


async def returning(client: Client, website: str) -> float:
    """Greet the ICP finder on a new thread of a known company; return the time to its question.

    The thread uses a different rule than the company's candidates, so the graph asks before it
    searches.
    """
    metadata = {"agent": "icp_finder", "website": website, "rule_name": "Another rule"}
    thread = (await client.json("POST", "/threads", {"metadata": metadata}))["thread_id"]
    message = {"role": "user", "content": "Hello"}
    body = {"assistant_id": "icp_finder", "input": {"messages": [message]}}
    begun = time.perf_counter()
    values = await client.json("POST", f"/threads/{thread}/runs/wait", body)
    elapsed = time.perf_counter() - begun
    if not (values.get("is_return_user") and values["decisions"]["rerun_icp"]):
        raise WrongAnswer(f"the ICP finder answered {values}")
    return elapsed


async def echo_on_thread(client: Client) -> float:
    """Run the echo graph on a new thread. The time excludes the creation of the thread."""
    return await echo(client, f"/threads/{await new_thread(client)}")


async def first_token(client: Client) -> float:
    """Stream a short reply, and return the time to its first token."""
    first, _, _ = await _stream(client, 10)
    return first


async def events_a_second(client: Client, count: int) -> float:
    """Stream a reply of `count` tokens, and return the event rate between the first and the last."""
    first, last, events = await _stream(client, count)
    return (events - 1) / (last - first)


async def events_of_request(client: Client, count: int, stored: bool) -> float:
    """Stream a reply of `count` tokens, and return the event rate from the request to the last.

    Args:
        client: the connection.
        count: number of tokens.
        stored: whether the events can be asked for again.
    """
    _, last, events = await _stream(client, count, stored)
    return events / last


async def _stream(client: Client, count: int, stored: bool = False) -> tuple[float, float, int]:
    """Return the times of the first and last token after the request, and the number of events."""
    marker = b"event: messages"
    received = bytearray()
    times: list[float] = []

    def on_body(data: bytes) -> None:
        received.extend(data)
        if marker in (data if times else received):
            times.append(time.perf_counter())

    body = {
        "assistant_id": "tokens",
        "input": {"count": count},
        "stream_mode": ["messages-tuple"],
        "stream_resumable": stored,
    }
    path = f"/threads/{await new_thread(client)}/runs/stream"
    begun = time.perf_counter()
    await client.request("POST", path, body, on_body)
    events = received.count(marker)
    if events < count or f'"t{count - 1} "'.encode() not in received:
        raise WrongAnswer(f"a stream of {count} tokens had {events}: {received[-500:]!r}")
    return times[0] - begun, times[-1] - begun, events


async def steps(client: Client, count: int) -> float:
    """Run a loop of `count` steps with one checkpoint each."""
    path = f"/threads/{await new_thread(client)}/runs/wait"
    begun = time.perf_counter()
    values = await client.json(
        "POST", path, {"assistant_id": "steps", "input": {"remaining": count}}
    )
    elapsed = time.perf_counter() - begun
    if values != {"remaining": 0}:
        raise WrongAnswer(f"steps answered {values}")
    return elapsed


async def command(client: Client, thread: str, graph: str, values: dict[str, Any]) -> None:
    """Start a run by a command of protocol 2, which stores its events, and wait for its end."""
    params = {"assistant_id": graph, "input": values}
    body = {"id": 1, "method": "run.start", "params": params}
    answer = await client.json("POST", f"/threads/{thread}/commands", body)
    if answer["type"] != "success":
        raise WrongAnswer(f"the command answered {answer}")
    await client.json("GET", f"/threads/{thread}/runs/{answer['result']['run_id']}/join")


async def resume(client: Client) -> float:
    """Answer an interrupted run, and return the time of the resuming request alone."""
    path = f"/threads/{await new_thread(client)}/runs/wait"
    await client.json("POST", path, {"assistant_id": "interrupt", "input": {"question": "go on?"}})
    begun = time.perf_counter()
    values = await client.json(
        "POST", path, {"assistant_id": "interrupt", "command": {"resume": "yes"}}
    )
    elapsed = time.perf_counter() - begun
    if values.get("answer") != "yes":
        raise WrongAnswer(f"interrupt answered {values}")
    return elapsed


async def sleepers(server: Server, count: int) -> float:
    """Start `count` runs at once that sleep for one second; return the time until all are done."""
    clients = [server.client() for _ in range(count)]
    try:
        paths = [f"/threads/{await new_thread(client)}/runs/wait" for client in clients]
        body = {"assistant_id": "sleep", "input": {"seconds": 1.0}}
        begun = time.perf_counter()
        answers = await asyncio.gather(
            *(c.json("POST", path, body) for c, path in zip(clients, paths, strict=True))
        )
        elapsed = time.perf_counter() - begun
    finally:
        for client in clients:
            client.close()
    if any(values != {"seconds": 0.0} for values in answers):
        raise WrongAnswer(f"sleep answered {answers}")
    return elapsed


async def hammer(server: Server, clients: int, seconds: float) -> Burst:
    """Run `clients` concurrent loops: create a thread, run echo on it, wait for it.

    Args:
        server: the server under load.
        clients: number of concurrent clients.
        seconds: duration of the burst.
    """
    begun, cpu = time.perf_counter(), server.cpu_seconds()

    async def loop() -> int:
        done = 0
        async with server.client() as client:
            while time.perf_counter() - begun < seconds:
                await echo_on_thread(client)
                done += 1
        return done

    runs = sum(await asyncio.gather(*(loop() for _ in range(clients))))
    return Burst(runs, time.perf_counter() - begun, server.cpu_seconds() - cpu)


async def search(
    client: Client, metadata: dict[str, Any], expected: int, asked: dict[str, Any] | None = None
) -> float:
    """Search threads as for the first page of a user's list.

    Args:
        client: the connection.
        metadata: the metadata that each result must have.
        expected: expected number of results.
        asked: the metadata filter of the request; None: all of `metadata`.
    """
    body = {"metadata": metadata if asked is None else asked, "limit": 10}
    begun = time.perf_counter()
    found = await client.json("POST", "/threads/search", body)
    elapsed = time.perf_counter() - begun
    wrong = [row for row in found if not metadata.items() <= row["metadata"].items()]
    if wrong or len(found) != expected:
        raise WrongAnswer(
            f"{orjson.dumps(metadata)!r} found {len(found)} threads, {len(wrong)} wrong"
        )
    return elapsed


async def warm_up(server: Server) -> None:
    """Run each action once. First calls (imports, statements, caches) count as start-up time."""
    async with server.client() as client:
        await echo(client)
        await echo_on_thread(client)
        await first_token(client)
        await steps(client, 3)
        await resume(client)
