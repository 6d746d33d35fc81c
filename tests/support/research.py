"""Research projects on a server, and a small web on loopback that it reads.

The web has a feed that lists its pages. `Websites.asked` is its request log.
"""

import asyncio
import json
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

from tests.support import databases
from tests.support.policy import SECRET, Member
from tests.support.processes import ROOT, Running, environment, free_port, running, threadhold
from tests.support.served import PATIENCE
from tests.support.websites import HTML, Page, Websites

QUESTION = "What does Skarra cost, and who are its competitors?"
ENDS = ("completed", "paused", "cancelled", "failed")
ARTICLES = {
    "review": (
        "Skarra review",
        "2025-05-01",
        (
            "Skarra costs 20 euros a month for each user. Skarra supports single sign-on and SCIM. "
            "Reviewers praised the fast search of Skarra in every comparison of this year."
        ),
    ),
    "old-prices": (
        "Prices of Skarra",
        "2023-04-01",
        (
            "Skarra costs 15 euros a month for each user. The old price list was printed on paper and "
            "was kept in the archive of the harbour town."
        ),
    ),
    "market": (
        "The market of Skarra",
        "2025-03-01",
        (
            "The competitor Heron undercuts Skarra by 20 percent. Skarra lacks a mobile app. "
            "Skarra plans to expand to Portugal next year, where demand is growing."
        ),
    ),
    "cooking": (
        "How to boil eggs",
        "2025-01-01",
        (
            "Boil the eggs for 5 minutes until they are firm, and serve them with bread and butter. "
            "This page is about breakfast and about nothing else."
        ),
    ),
}


def article(title: str, date: str, text: str) -> Page:
    """Return a page with a title, a date and a text."""
    return Page(
        f"<html><head><title>{title}</title><meta property='article:published_time' "
        f"content='{date}T00:00:00Z'></head><body><article><h1>{title}</h1><p>{text}</p>"
        "</article></body></html>".encode()
    )


def publish(web: Websites, folder: str, articles: dict[str, tuple[str, str, str]]) -> str:
    """Publish articles and a feed of them below a folder. Return the address of the feed."""
    items = []
    for name, (title, date, text) in articles.items():
        web.pages[f"/{folder}/{name}"] = article(title, date, text)
        items.append(
            f"<item><title>{title}</title><link>{web.url}/{folder}/{name}</link>"
            f"<description>{text[:120]} Skarra</description>"
            f"<pubDate>{_pub_date(date)}</pubDate></item>"
        )
    feed = f"<rss version='2.0'><channel><title>News</title>{''.join(items)}</channel></rss>"
    web.pages[f"/{folder}/feed"] = Page(feed.encode(), headers={**HTML, "content-type": "text/xml"})
    return f"{web.url}/{folder}/feed"


def _pub_date(date: str) -> str:
    year, month, day = date.split("-")
    name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][
        int(month) - 1
    ]
    return f"{day} {name} {year} 00:00:00 GMT"


def fetched(web: Websites) -> list[str]:
    """Return the articles that were requested, in order."""
    names = [path.rpartition("/")[2] for path in web.asked]
    return [name for name in names if name in ARTICLES or name.startswith("page-")]


@dataclass
class World:
    """A server that researches, and the web that it reads.

    Attributes:
        folder: the folder of its files.
        web: the web.
        env: more environment variables.
        server: the running server.
    """

    folder: Path
    web: Websites
    env: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    server: Running | None = None
    _up: ExitStack = field(default_factory=ExitStack)

    def start(self) -> Running:
        """Start the server on the existing database."""
        config = {
            "graphs": {"research": f"{ROOT}/my_agent/research/graph.py:graph"},
            "auth": {"path": "hooks.auth:auth"},
            "sql": {"tenant_key": "tenant_id", "state_keys": "input"},
        }
        file = self.folder / "langgraph.json"
        file.write_text(json.dumps(config))
        command = threadhold("serve", "--config", file, "--port", str(self.port))
        command += ["--database-url", databases.url(self.folder / "data.db")]
        env = {
            "JWT_SECRET": SECRET,
            "RESEARCH_WEB_SEARCH": "false",
            "RESEARCH_CORPUS": "false",
            "RESEARCH_PRIVATE_NETWORKS": "127.0.0.1/32",
            "RESEARCH_HOST_DELAY_SECONDS": "0",
            "RESEARCH_FEED_SECONDS": "0",
            "RESEARCH_DATA_FOLDER": str(self.folder / "task-data"),
            "SHUTDOWN_GRACE_SECONDS": "0.5",
            **self.env,
        }
        self.server = self._up.enter_context(
            running(command, self.port, self.folder, environment(**env))
        )
        return self.server

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        assert self.server is not None
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait(PATIENCE)

    def stop(self) -> None:
        """Stop the server."""
        self._up.close()


async def started(client: Member, question: str = QUESTION, **body: Any) -> str:
    """Start a project and return its id."""
    answer = await client.http.post("/research", json={"question": question, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["project_id"])


async def progress(client: Member, project: str) -> Any:
    """Return the progress of a project."""
    return await client.get(f"/research/{project}/progress")


async def until(client: Member, project: str, *statuses: str) -> Any:
    """Wait until a project has one of these statuses. Return its progress."""
    async with asyncio.timeout(PATIENCE):
        while (found := await progress(client, project))["status"] not in statuses:
            assert found["status"] not in ENDS, found
            await asyncio.sleep(0.05)
    return found


async def at(client: Member, project: str, stage: str) -> Any:
    """Wait until a project is at a stage. Return its progress."""
    async with asyncio.timeout(PATIENCE):
        while (found := await progress(client, project))["stage"] != stage:
            assert found["status"] not in ENDS, found
            await asyncio.sleep(0.02)
    return found


async def control(client: Member, project: str, what: str, body: Any = None) -> Any:
    """Send `cancel`, `finish`, `pause` or `resume`. Return the answer, which must succeed."""
    answer = await client.http.post(f"/research/{project}/{what}", json=body or {})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def report(client: Member, project: str) -> Any:
    """Return the report of a project."""
    return (await client.get(f"/research/{project}/report"))["report"]


def claims(report: Any) -> list[str]:
    """Return the texts of the published claims."""
    return [claim["text"] for section in report["sections"] for claim in section["claims"]]


def tenant_of(client: Member) -> str:
    """Return the tenant of a user, from the token."""
    token = client.headers["authorization"].partition(" ")[2]
    return str(jwt.decode(token, SECRET, algorithms=["HS256"])["tenant_id"])
