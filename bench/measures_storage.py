"""The rows about long conversations: their bytes, and what their turns and reads cost."""

import random
import string
import time
from collections.abc import Callable
from statistics import median
from typing import Any
from uuid import uuid4

import orjson

from bench import servers, sizes
from bench.bare import Bare, bare
from bench.client import Client
from bench.load import WrongAnswer, new_thread, warm_up
from bench.measures import BARE, BEFORE, STOCK
from bench.report import Line
from bench.servers import Server
from bench.stage import Stage

TURNS, CHARACTERS = 400, 500
# Turns at the beginning and at the end whose times count.
FIRST, LAST = range(1, 11), range(TURNS - 21, TURNS)
MANY_MESSAGES, APPENDED = 5000, 10
LISTED = 10
# Messages of one request, which a server limits.
AT_ONCE = 1000
# Words of a vocabulary, as people have one: few words would be compressed to nothing.
_letters = random.Random(1)
WORDS = [
    "".join(_letters.choices(string.ascii_lowercase, k=_letters.randint(2, 10)))
    for _ in range(20_000)
]
Sizes = Callable[[], tuple[int, int]]
Message = dict[str, Any]


async def turns(stage: Stage) -> list[Line]:
    """Talk on one thread, beside the bare graph on a stock saver with the same words."""
    lines = []
    for where, database, peer, measured, peer_measured, most in _databases(stage):
        async with (
            servers.ours(stage.scratch, database, f"turns{where}") as ours,
            bare(peer) as floor,
        ):
            await warm_up(ours)
            before, peer_before = measured(), peer_measured()
            mine, theirs, text = await _talk(ours, floor)
            grown = [a - b for a, b in zip(measured(), before, strict=True)]
            peer_grown = peer_measured()[0] - peer_before[0]
        name = f"{TURNS} turns of {CHARACTERS} characters{where}"
        first, last = (median(mine[turn] for turn in part) * 1e3 for part in (FIRST, LAST))
        stock = median(theirs[turn] for turn in LAST) * 1e3
        lines += [
            Line(f"{name}, checkpoints", grown[0] / text, "x the text", limit=most),
            Line(f"{name}, checkpoints", grown[0] / 1e6, "MB", peer_grown / 1e6, BARE),
            Line(f"{name}, whole database", grown[1] / text, "x the text"),
            Line(f"turn {TURNS}{where}, p50", last, "ms", first, "turn 1", 2.0),
            Line(f"turn {TURNS}{where}, p50", last, "ms", stock, BARE, 1 / 5),
        ]
    return lines


def _databases(stage: Stage) -> list[tuple[str, str, str, Sizes, Sizes, float]]:
    """Return each kind of database: ours, the bare graph's, their sizes, and the bound."""
    own, bare_file = stage.scratch / "turns.db", stage.scratch / "bare-turns.db"
    postgres = stage.postgres()
    url, bare_url = postgres.create("turns"), postgres.create("bare_turns")
    owner, bare_owner = postgres.as_owner("turns"), postgres.as_owner("bare_turns")
    return [
        (
            "",
            f"sqlite:///{own}",
            str(bare_file),
            lambda: sizes.of_file(own),
            lambda: sizes.of_file(bare_file),
            4.0,
        ),
        (
            " on Postgres",
            url,
            bare_url,
            lambda: sizes.of_postgres(owner),
            lambda: sizes.of_postgres(bare_owner),
            5.0,
        ),
    ]


async def _talk(ours: Server, floor: Bare) -> tuple[list[float], list[float], int]:
    """Return the seconds of each turn on our server and on the bare graph, and the bytes of text."""
    mine, theirs = list[float](), list[float]()
    other = str(uuid4())
    async with ours.client() as client:
        thread = await new_thread(client)
        for _ in range(TURNS):
            said = [_said()]
            mine.append(await _turn(client, thread, said))
            theirs.append(await floor.turn(other, said))
        state = await client.json("GET", f"/threads/{thread}/state")
    messages = state["values"]["messages"]
    if len(messages) != 2 * TURNS:
        raise WrongAnswer(f"{TURNS} turns left {len(messages)} messages")
    return mine, theirs, sum(len(each["content"]) for each in messages)


async def _turn(client: Client, thread: str, said: list[Message]) -> float:
    body = {"assistant_id": "echo", "input": {"messages": said}}
    taken, values = await _timed(client, f"/threads/{thread}/runs/wait", body)
    if values["messages"][-1]["content"] != f"echo: {said[-1]['content']}":
        raise WrongAnswer(f"echo answered {values['messages'][-1]}")
    return taken


async def _timed(client: Client, path: str, body: Any) -> tuple[float, Any]:
    """Return the seconds until the answer is here, without reading its JSON, and the answer."""
    parts: list[bytes] = []
    begun = time.perf_counter()
    await client.request("POST", path, body, parts.append)
    return time.perf_counter() - begun, orjson.loads(b"".join(parts))


def _said() -> Message:
    text = " ".join(random.choices(WORDS, k=CHARACTERS // 5))
    return {"role": "user", "content": text[:CHARACTERS]}


async def long_thread(stage: Stage) -> list[Line]:
    """Append messages to a thread that has thousands."""
    _, ours = await stage.pair()
    mine, theirs = list[float](), list[float]()
    other = str(uuid4())
    async with ours.client() as client, bare(str(stage.scratch / "bare-long.db")) as floor:
        thread = await _filled(client, MANY_MESSAGES)
        await floor.fill(other, _messages(MANY_MESSAGES))
        for _ in range(stage.scale.samples):
            said = [_said() for _ in range(APPENDED)]
            mine.append(await _turn(client, thread, said))
            theirs.append(await floor.turn(other, said))
    name = f"a run that appends {APPENDED} messages to {MANY_MESSAGES:,}, p50"
    return [Line(name, median(mine) * 1e3, "ms", median(theirs) * 1e3, BARE, 1 / 10)]


async def history(stage: Stage) -> list[Line]:
    """Read the last checkpoints of a long thread."""
    stock, ours = await stage.pair()
    peers = [(STOCK, stock, None)]
    if older := await stage.older():
        peers.append((BEFORE, older, 1 / 4))
    lines = []
    for peer_name, peer, limit in peers:
        found = []
        for server in (ours, peer):
            async with server.client() as client:
                thread = await _filled(client, 2 * TURNS)
                for _ in range(4):
                    await _turn(client, thread, [_said()])
                found.append([await _history(client, thread) for _ in range(stage.scale.samples)])
        mine, theirs = (median(each) * 1e3 for each in found)
        name = f"/history of 10 checkpoints at {TURNS} turns, p50"
        lines.append(Line(name, mine, "ms", theirs, peer_name, limit))
    return lines


async def _history(client: Client, thread: str) -> float:
    taken, found = await _timed(client, f"/threads/{thread}/history", {"limit": 10})
    if len(found) != 10 or len(found[0]["values"]["messages"]) < 2 * TURNS:
        raise WrongAnswer(f"{len(found)} checkpoints")
    return taken


async def listing(stage: Stage) -> list[Line]:
    """List long threads without their values, and empty ones."""
    _, ours = await stage.pair()
    times: dict[str, list[float]] = {"long": [], "empty": []}
    async with ours.client() as client:
        for _ in range(LISTED):
            await client.json("POST", "/threads", {"metadata": {"size": "empty"}})
            await _filled(client, 2 * TURNS, size="long")
        for _ in range(20 * stage.scale.samples):
            for size, taken in times.items():
                taken.append(await _list(client, size))
    name = f"/threads/search of {LISTED} threads of {TURNS} turns without values, p50"
    long, empty = (median(each) * 1e3 for each in times.values())
    return [Line(name, long, "ms", empty, "empty threads", 1.2)]


async def _list(client: Client, size: str) -> float:
    body = {"metadata": {"size": size}, "limit": LISTED, "select": ["thread_id", "status"]}
    taken, found = await _timed(client, "/threads/search", body)
    if len(found) != LISTED:
        raise WrongAnswer(f"{len(found)} threads")
    return taken


async def _filled(client: Client, count: int, **metadata: str) -> str:
    """Return a thread with messages in its state."""
    body = {"metadata": {"graph_id": "echo", **metadata}}
    thread: str = (await client.json("POST", "/threads", body))["thread_id"]
    messages = _messages(count)
    for start in range(0, count, AT_ONCE):
        values = {"messages": messages[start : start + AT_ONCE]}
        update = {"values": values, "as_node": "answer"}
        await client.json("POST", f"/threads/{thread}/state", update)
    return thread


def _messages(count: int) -> list[Message]:
    roles = ("user", "assistant")
    return [{**_said(), "role": roles[n % 2], "id": f"m{n}"} for n in range(count)]
