"""`python -m bench.abuser KIND PORT`: do one tenant's worst to a server, in a process of its own.

It reads the tenant's token from the first line of its input, prints `ready` once the abuse has begun,
and goes on until its input ends. Then it prints how often each status was answered. It tries again a
second after a refusal.
"""

import argparse
import asyncio
import sys
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import orjson
import uvloop

from bench.client import Client, HTTPFailure

RETRY_SECONDS = 1.0
REFUSED = (408, 409, 413, 422, 429, 503, 507)
# Threads of the searches, and the numbers in the list of each.
LISTS, NUMBERS = 300, 10_000
SEARCHERS = 40
UPLOADERS = 4
BOMB_MEGABYTES = 30
RUNS, BATCH, CREATORS = 5_000, 50, 40
STREAMS = 1_500
STATE_BYTES, STATES, READERS = 900_000, 100, 10
VERSION_BYTES, CHANGERS = 900_000, 8


class Abuser:
    """Requests of one tenant.

    Args:
        port: Of the server.
        token: Of the tenant's user.
    """

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self.answered: Counter[int] = Counter()

    def client(self) -> Client:
        return Client(self._port, self._token)

    async def thread(self, **body: Any) -> str:
        """Create a thread and return its id."""
        async with self.client() as client:
            thread: str = (await client.json("POST", "/threads", body))["thread_id"]
            return thread

    async def send(self, client: Client, method: str, path: str, body: Any = None) -> bool:
        """Send a request and count its status; return whether it was accepted. Wait after a refusal.

        Raises:
            HTTPFailure: the server failed.
        """
        try:
            await client.request(method, path, body, lambda data: None)
        except HTTPFailure as failure:
            if failure.status and failure.status not in REFUSED:
                raise
            self.answered[failure.status] += 1
            await asyncio.sleep(RETRY_SECONDS)
            return False
        self.answered[200] += 1
        return True

    async def repeat(self, together: int, method: str, path: str, body: Any = None) -> None:
        """Send the same request for ever, several at a time."""

        async def loop() -> None:
            async with self.client() as client:
                while True:
                    await self.send(client, method, path, body)

        await asyncio.gather(*(loop() for _ in range(together)))

    async def drain(self, together: int, requests: Iterable[tuple[str, str, Any]]) -> None:
        """Send each request until it is accepted, several at a time."""
        left = iter(requests)

        async def loop() -> None:
            async with self.client() as client:
                for request in left:
                    while not await self.send(client, *request):
                        pass

        await asyncio.gather(*(loop() for _ in range(together)))


Begin = Callable[[Abuser], Awaitable[Awaitable[None]]]
"""Prepares the abuse, and returns the abuse itself."""


async def searches(abuser: Abuser) -> Awaitable[None]:
    """Search for a list that differs from each stored one in its last number."""
    numbers = list(range(NUMBERS))
    stored = orjson.dumps({"metadata": {"numbers": numbers}})
    await abuser.drain(4, (("POST", "/threads", stored) for _ in range(LISTS)))
    wanted = orjson.dumps({"metadata": {"numbers": [*numbers[:-1], -1]}})
    return abuser.repeat(SEARCHERS, "POST", "/threads/search", wanted)


async def bombs(abuser: Abuser) -> Awaitable[None]:
    """Upload small PDF files whose page expands to many drawing commands."""
    content = _bomb(BOMB_MEGABYTES)

    async def upload(number: int) -> None:
        await abuser.repeat(1, "PUT", f"/api/documents/bomb-{number}.pdf", content)

    async def all_uploads() -> None:
        await asyncio.gather(*map(upload, range(UPLOADERS)))

    return all_uploads()


async def queue(abuser: Abuser) -> Awaitable[None]:
    """Queue runs: half of them one by one, half in batches."""
    run = {"assistant_id": "sleep", "input": {"seconds": 1.0}}
    one = [("POST", "/runs", orjson.dumps(run))] * (RUNS // 2)
    batches = [("POST", "/runs/batch", orjson.dumps([run] * BATCH))] * (RUNS // 2 // BATCH)

    async def both() -> None:
        await asyncio.gather(abuser.drain(CREATORS, one), abuser.drain(1, batches))

    return both()


async def streams(abuser: Abuser) -> Awaitable[None]:
    """Follow one thread, which sends a hundred events a second, many times."""
    thread = await abuser.thread()
    run = {"assistant_id": "stamps", "input": {"count": 100_000, "interval": 0.01}}
    async with abuser.client() as client:
        command = {"id": 1, "method": "run.start", "params": run}
        await client.json("POST", f"/threads/{thread}/commands", command)
    body = {"channels": ["values", "messages", "lifecycle", "input", "custom"]}
    return abuser.repeat(STREAMS, "POST", f"/threads/{thread}/stream/events", body)


async def history(abuser: Abuser) -> Awaitable[None]:
    """Ask for all states of a thread with a long message."""
    thread = await abuser.thread()
    path = f"/threads/{thread}"
    message = {"role": "user", "content": "x" * STATE_BYTES}
    run = {"assistant_id": "echo", "input": {"messages": [message]}}
    change = {"values": {"messages": [{"role": "user", "content": "more"}]}}
    async with abuser.client() as client:
        await client.json("POST", f"{path}/runs/wait", run)
        for _ in range(STATES):
            await client.json("POST", f"{path}/state", change)
    return abuser.repeat(READERS, "GET", f"{path}/history?limit=1000")


async def versions(abuser: Abuser) -> Awaitable[None]:
    """Add large versions to an assistant."""
    async with abuser.client() as client:
        made = await client.json("POST", "/assistants", {"graph_id": "echo"})
    body = orjson.dumps({"context": {"text": "x" * VERSION_BYTES}})
    return abuser.repeat(CHANGERS, "PATCH", f"/assistants/{made['assistant_id']}", body)


KINDS: dict[str, Begin] = {
    "searches": searches,
    "bombs": bombs,
    "queue": queue,
    "streams": streams,
    "history": history,
    "versions": versions,
}


def _bomb(megabytes: int) -> bytes:
    """Return a small PDF whose page expands to so many megabytes."""
    content = zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * (megabytes * 45_000), 9)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page,
        b"<</Length %d/Filter/FlateDecode>>stream\n" % len(content) + content + b"\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"%PDF-1.4\n"
    for number, each in enumerate(objects, 1):
        body += b"%d 0 obj%bendobj\n" % (number, each)
    return body + b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF"


async def abuse(kind: str, port: int) -> None:
    """Abuse the server until the input ends."""
    abuser = Abuser(port, (await asyncio.to_thread(sys.stdin.readline)).strip())
    work = asyncio.ensure_future(await KINDS[kind](abuser))
    print("ready", flush=True)
    end = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    done, _ = await asyncio.wait((work, end), return_when=asyncio.FIRST_COMPLETED)
    if work in done:
        await work
        await end
    work.cancel()
    print(orjson.dumps({str(status): n for status, n in abuser.answered.items()}).decode())


def main() -> None:
    """Abuse the server that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m bench.abuser", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    uvloop.run(abuse(options.kind, options.port))


if __name__ == "__main__":
    main()
