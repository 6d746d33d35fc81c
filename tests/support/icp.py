"""Shared by tests of the ICP finder: customers' websites on loopback, a server, users."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import uvicorn
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from my_agent.tables import tables
from tests.support import databases
from tests.support.openai_replies import Answer, say_json
from tests.support.policy import SECRET, headers
from tests.support.processes import ROOT, Running, environment, free_port, running, threadhold
from tests.support.served import PATIENCE
from threadhold.tables import Engine

AGENT = "icp_finder"
CUSTOMERS = 5
TEXT = (
    "We are a wholesaler. Wholesale trade is our business: wholesale of food, wholesale of machinery, "
    "a wholesale distributor, importer and exporter to every wholesaler on the island."
)


def act(kind: str, quote: str, **fields: Any) -> dict[str, Any]:
    """Return an act that a model finds in a message.

    Args:
        kind: its kind, such as `Command`.
        quote: the words of the message that say it.
        fields: what else it has.
    """
    return {"kind": kind, "quote": quote, **fields}


def reading(*acts: dict[str, Any], language: str = "en") -> Answer:
    """Return a model's answer to the call that reads a message: these acts."""
    return say_json({"language": language, "acts": list(acts)})


class Sites:
    """Websites of wholesalers, each on its own port.

    Attributes:
        urls: their addresses.
        asked: set when a page is requested.
    """

    def __init__(self, count: int = CUSTOMERS) -> None:
        self._sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self.urls = [f"http://127.0.0.1:{each.getsockname()[1]}" for each in self._sockets]
        self.asked = threading.Event()
        self._open = threading.Event()
        self._open.set()
        app = Starlette(routes=[Route("/", self._page)])
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                # Before uvicorn 0.36, another one becomes that of all later tests of the process.
                loop="asyncio",
                ws="none",
                timeout_graceful_shutdown=0,
                timeout_keep_alive=75,
            )
        )
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def hold(self) -> None:
        """Delay all responses until `release`."""
        self._open.clear()
        self.asked.clear()

    def release(self) -> None:
        """Send the delayed responses."""
        self._open.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        self._server.run(sockets=self._sockets)

    async def _page(self, request: Request) -> Response:
        self.asked.set()
        while not self._open.is_set():
            await asyncio.sleep(0.02)
        title = f"Wholesaler {request.url.port}"
        return HTMLResponse(
            f"<html><head><title>{title}</title></head><body><p>{TEXT}</p></body></html>"
        )


@contextmanager
def icp_server(
    folder: Path, config: Path = ROOT / "langgraph.json", **env: str
) -> Iterator[Running]:
    """Serve the project's graphs and policy on a database in `folder`, without network and model."""
    variables = {
        "JWT_SECRET": SECRET,
        "ICP_PRIVATE_NETWORKS": "127.0.0.0/8",
        "ICP_WEB_SEARCH": "false",
        # The first page takes long on a busy machine: it imports a library.
        "ICP_SITE_SECONDS": str(PATIENCE),
        "OPENAI_API_KEY": "",
        "OPENAI_BASE_URL": "",
        **env,
    }
    port = free_port()
    command = threadhold("serve", "--config", config, "--port", str(port))
    command += ["--database-url", url(folder)]
    with running(command, port, folder, environment(**variables), ready="/health") as server:
        yield server


def url(folder: Path) -> str:
    """Return the database URL of the server in `folder`."""
    return databases.url(folder / "data.db")


@contextmanager
def product(folder: Path) -> Iterator[Engine]:
    """Open the same database next to the server."""
    opened = tables.open(url(folder))
    try:
        yield opened
    finally:
        opened.close()


class Person:
    """A user in one thread of the ICP finder; by default the only user of a tenant.

    Attributes:
        sdk: a client of the running server.
        thread: the thread, once there is one.
        values: the thread's state after the last run.
    """

    def __init__(self, sites: Sites, folder: Path, tenant: str = "", name: str = "ann") -> None:
        self.tenant = tenant or f"tenant-{uuid4().hex[:8]}"
        self.name = name
        self.website = f"http://{self.tenant}.example"
        self.sites = sites
        self.folder = folder
        self.sdk: LangGraphClient
        self.thread: str | None = None
        self.values: Any = {}

    @asynccontextmanager
    async def at(self, server: Running) -> AsyncIterator[None]:
        """Use this server in the enclosed code."""
        who = headers(self.tenant, self.name)
        async with get_client(url=server.url, headers=who, timeout=PATIENCE * 4) as self.sdk:
            yield

    async def open(self, **metadata: Any) -> str:
        """Create a thread and continue there."""
        metadata = {"agent": AGENT, **metadata}
        self.thread = (await self.sdk.threads.create(metadata=metadata))["thread_id"]
        return self.thread

    async def say(self, text: str) -> str:
        """Send a message and return the answer."""
        message = {"messages": [{"role": "user", "content": text}]}
        return await self._run(input=message)

    async def answer(self, reply: Any) -> str:
        """Answer an interrupt and return the next answer."""
        return await self._run(command={"resume": reply})

    @property
    def asked(self) -> str | None:
        """Return the kind of the waiting question, or None."""
        waiting = self.values.get("__interrupt__") or []
        return waiting[0]["value"]["kind"] if waiting else None

    @property
    def question(self) -> Any:
        """Return the payload of the waiting interrupt."""
        return self.values["__interrupt__"][0]["value"]

    @property
    def customers(self) -> str:
        """Return a message with five websites of customers."""
        return ", ".join(self.sites.urls)

    @property
    def customers_read(self) -> Answer:
        """Return how a model reads that message."""
        said = act("Answer", self.customers, field="customers", value=self.sites.urls)
        return reading(said)

    async def settle(self) -> None:
        """Provide all data, confirm the search, and wait for the candidates."""
        if self.thread is None:
            await self.open()
        await self.say(f"Our website is {self.website}")
        await self.say(self.customers)
        assert self.asked == "confirm_icp", self.values["messages"][-1]
        await self.answer("yes")
        assert self.asked == "enrich", self.values["messages"][-1]

    async def metadata(self, thread: str | None = None) -> Any:
        """Return the metadata of a thread; default: the current one."""
        return (await self.sdk.threads.get(thread or self.thread or ""))["metadata"]

    async def work(self, change: Callable[[Any], Any]) -> Any:
        """Change the ICP finder's tables."""
        with product(self.folder) as opened:
            return await opened.run(change, self.tenant, write=True)

    async def _run(self, **options: Any) -> str:
        """Run to the end or to the next question, and return the answer."""
        self.values = await self.sdk.runs.wait(self.thread, AGENT, **options)
        state = await self.sdk.threads.get_state(self.thread or "")
        said = state["values"]["messages"]  # type: ignore[call-overload]
        last = max(at for at, each in enumerate(said) if each["type"] == "human")
        return "\n".join(each["content"] for each in said[last + 1 :])
