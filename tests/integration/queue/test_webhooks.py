"""The delivery of webhooks: when it tries again, what a hostile receiver does, and whose turn it is."""

import asyncio
import socket
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
import standardwebhooks.webhooks as webhooks_package
from sqlalchemy import func, select, update
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import webhooks
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import seal_row
from langgraph_runtime_sql.webhooks import delivery, outbox, signing
from tests.support.http_server import QuietHandler, answering
from tests.support.runtime import PATIENCE, opened, serving, set_options
from threadhold.stock import webhooks as stock_webhooks

pytestmark = pytest.mark.usefixtures("each_database")

Answer = tuple[int, dict[str, str]]


class Receiver:
    """A receiver whose answers a test chooses.

    Attributes:
        url: Its address.
        answer: Gives status and headers for a path.
        calls: Method, path and body of each call.
        headers: The headers of each call, in small letters.
        endless: Paths whose answer has a body without an end.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer: Callable[[str], Answer] = lambda _: (200, {})
        self.calls: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.endless: set[str] = set()

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _ in self.calls]


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            receiver.calls.append((self.command, self.path, body))
            receiver.headers.append({name.lower(): text for name, text in self.headers.items()})
            status, headers = receiver.answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                while self.path in receiver.endless:
                    self.wfile.write(b"x" * 65_536)
            except ConnectionError:
                return

        do_GET = do_POST

    with answering(Handler) as url:
        receiver = Receiver(url)
        yield receiver


@pytest.fixture
async def delivering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[delivery.Delivery]:
    """Deliver webhooks to this machine, except to paths with `private`."""

    async def validate(url: str) -> None:
        if "private" in url:
            raise HTTPException(422, "private")

    with serving():
        from langgraph_api import webhook

        async with httpx.AsyncClient(timeout=60) as client, opened(tmp_path / "webhooks.db"):

            async def ensure() -> Any:
                return SimpleNamespace(client=client)

            monkeypatch.setattr(webhook, "validate_webhook_url_or_raise", validate)
            monkeypatch.setattr(webhook, "ensure_webhook_http_client", ensure)
            working = delivery.Delivery(runtime.current())
            task = asyncio.create_task(working.run())
            yield working
            task.cancel()
            await asyncio.wait([task])
            await working.stop()


async def add(url: str, tenant: str | None = None, count: int = 1) -> list[UUID]:
    """Store webhooks of runs that are deleted, each due after the one before."""

    def write(conn: Connection) -> list[UUID]:
        ids = [uuid.uuid4() for _ in range(count)]
        for webhook_id in ids:
            now = conn.now()
            row: Row = {
                "webhook_id": webhook_id,
                "run_id": uuid.uuid4(),
                "status": "pending",
                "message": {"url": url, "body": {"status": "success"}},
                "attempts": 0,
                "created_at": now,
                "due_at": now,
                "give_up_at": now + outbox.GIVE_UP,
                "claimed_until": None,
                "error": None,
                "tenant": tenant,
            }
            conn.execute(webhooks.insert(), seal_row(conn, webhooks, webhook_id, tenant, row))
        return ids

    return await runtime.current().database.write(write)


async def find(webhook_id: UUID) -> Row | None:
    query = select(webhooks).where(webhooks.c.webhook_id == webhook_id)
    return await runtime.current().database.read(lambda conn: conn.fetchone(query))


async def tried(webhook_id: UUID, attempts: int) -> Row | None:
    """Wait until so many attempts have failed, or the webhook is delivered. Return its row."""
    async with asyncio.timeout(PATIENCE):
        while (row := await find(webhook_id)) is not None:
            if row["attempts"] >= attempts and row["claimed_until"] is None:
                break
            await asyncio.sleep(0.005)
    return row


async def pass_time(row: Row) -> None:
    """Move the dates of a webhook back, as if the time until it is due had passed."""

    def write(conn: Connection) -> None:
        by = row["due_at"] - conn.now()
        dates = {name: row[name] - by for name in ("created_at", "due_at", "give_up_at")}
        conn.execute(
            update(webhooks).where(webhooks.c.webhook_id == row["webhook_id"]).values(**dates)
        )

    await runtime.current().database.write(write)


async def test_failing_receiver_is_called_for_a_day_at_growing_intervals(
    delivering: delivery.Delivery,
) -> None:
    with receiving() as receiver:
        receiver.answer = lambda _: (503, {})
        [webhook_id] = await add(f"{receiver.url}/down")
        ages = []
        for attempt in range(1, 50):
            delivering.wake()
            row = await tried(webhook_id, attempt)
            assert row is not None
            assert len(receiver.calls) == attempt
            if row["status"] == "dead":
                break
            await pass_time(row)
            ages.append(row["due_at"] - row["created_at"])
    assert 8 <= len(receiver.calls) <= 20
    assert ages == sorted(ages)
    assert timedelta(hours=18) < ages[-1] <= outbox.GIVE_UP


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7200", 7200),
        (None, 3 * 3600),
        ("-1", 0),
        ("soon", 0),
        ("Fri, 31 Dec 99999999999 23:59:59 GMT", 0),
    ],
    ids=["seconds", "date", "negative", "words", "year"],
)
async def test_retry_after_is_obeyed(
    delivering: delivery.Delivery, header: str | None, seconds: float
) -> None:
    date = datetime.now(UTC) + timedelta(seconds=seconds)
    header = header or format_datetime(date, usegmt=True)
    with receiving() as receiver:
        receiver.answer = lambda _: (429, {"retry-after": header})
        [webhook_id] = await add(f"{receiver.url}/busy")
        delivering.wake()
        row = await tried(webhook_id, 1)
    assert row is not None
    assert row["status"] == "pending"
    # Without the header, the next attempt is after a few seconds. The date was made earlier.
    wait = (row["due_at"] - row["created_at"]).total_seconds()
    assert wait >= seconds * 0.8
    assert wait >= 3600 or seconds == 0


@pytest.mark.parametrize("header", ["86401", "9" * 400, "9" * 5000])
async def test_retry_after_a_day_is_a_dead_letter(
    delivering: delivery.Delivery, header: str
) -> None:
    with receiving() as receiver:
        receiver.answer = lambda _: (503, {"retry-after": header})
        [webhook_id] = await add(f"{receiver.url}/busy")
        delivering.wake()
        row = await tried(webhook_id, 1)
    assert row is not None
    assert (row["status"], row["attempts"]) == ("dead", 1)


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_redirect_that_loses_the_body_is_a_failure(
    delivering: delivery.Delivery, status: int
) -> None:
    with receiving() as receiver:
        receiver.answer = lambda _: (status, {"location": "/other"})
        [webhook_id] = await add(f"{receiver.url}/moved")
        delivering.wake()
        row = await tried(webhook_id, 1)
    assert row is not None
    assert "only 307 and 308" in row["error"]
    assert receiver.paths == ["/moved"]


async def test_redirect_with_the_body_is_followed_without_reading_the_answer(
    delivering: delivery.Delivery,
) -> None:
    with receiving() as receiver:
        receiver.answer = lambda path: (307, {"location": "/b"}) if path == "/a" else (200, {})
        receiver.endless = {"/a", "/b"}
        [webhook_id] = await add(f"{receiver.url}/a")
        delivering.wake()
        assert await tried(webhook_id, 1) is None
    assert receiver.paths == ["/a", "/b"]
    assert {command for command, _, _ in receiver.calls} == {"POST"}
    assert all(b"success" in body for _, _, body in receiver.calls)


async def test_redirects_to_refused_addresses_and_in_circles_are_failures(
    delivering: delivery.Delivery,
) -> None:
    with receiving() as receiver:
        receiver.answer = lambda path: (
            308,
            {"location": f"{path}private" if path == "/" else path},
        )
        for path, error in (("/", "refused address"), ("/circle", "TooManyRedirects")):
            [webhook_id] = await add(receiver.url + path)
            delivering.wake()
            row = await tried(webhook_id, 1)
            assert row is not None
            assert error in row["error"]
    assert Counter(receiver.paths) == {"/": 1, "/circle": 6}


async def test_silent_receiver_is_given_up_and_called_again(
    delivering: delivery.Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "REQUEST_SECONDS", 0.2)
    with silent() as url:
        [webhook_id] = await add(url)
        delivering.wake()
        row = await tried(webhook_id, 1)
    assert row is not None
    assert (row["status"], row["error"]) == ("pending", "no answer within 0.2 s")


async def test_silent_receivers_of_a_tenant_delay_no_other_webhooks(
    delivering: delivery.Delivery,
) -> None:
    with silent() as url, receiving() as receiver:
        await add(url, "flood", 10_000)
        delivering.wake()
        for tenant in ("a", "b", None):
            # Each is due after all of the flood.
            [webhook_id] = await add(f"{receiver.url}/{tenant}", tenant)
            delivering.wake()
            assert await tried(webhook_id, 1) is None
        assert await runtime.current().database.read(_attempts) == delivery.TOGETHER_OF_TENANT


@contextmanager
def silent() -> Iterator[str]:
    """Accept connections, and answer nothing until the end of the block."""
    over = threading.Event()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            over.wait(PATIENCE)

    with answering(Handler) as url:
        try:
            yield url
        finally:
            over.set()


def _attempts(conn: Connection) -> Any:
    return conn.scalar(select(func.sum(webhooks.c.attempts)).where(webhooks.c.tenant == "flood"))


async def test_one_tenant_has_a_few_deliveries_of_a_claim(tmp_path: Path) -> None:
    def claim(conn: Connection) -> Counter[str | None]:
        found = outbox.claim(conn, limit=32, active={"flood": 7}, most=8)
        return Counter(row["tenant"] for row in found)

    # Nothing else claims them.
    with serving():
        async with opened(tmp_path / "claims.db"):
            await add("http://127.0.0.1:1/", "flood", 50)
            await add("http://127.0.0.1:1/", "other", 2)
            await add("http://127.0.0.1:1/", None, 2)
            claimed = await runtime.current().database.write(claim)
    assert claimed == {"flood": 1, "other": 2, None: 2}


class Names:
    """A name server that gives the next of its answers to each question about a name.

    Attributes:
        asked: How often it was asked for the name.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.asked, self._answers, system = 0, answers, socket.getaddrinfo

        def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
            if host not in (REBINDING, REBINDING.encode()):
                return system(host, port, *args, **options)
            self.asked += 1
            found = self._answers[min(self.asked, len(self._answers)) - 1]
            return [each for name in found for each in system(name, port, *args, **options)]

        patch.setattr(socket, "getaddrinfo", resolve)


REBINDING = "rebinding.example"
# The receiver; and an address of the same machine at which no webhook may arrive.
ALLOWED, REFUSED = "127.0.0.1", "0.0.0.0"


@pytest.fixture
async def checking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[delivery.Delivery]:
    """Deliver webhooks with the real checks, which allow loopback, signed for each tenant."""
    with serving():
        from langgraph_api import http, webhook

        allowed = {"url": {"disable_loopback": False, "require_https": False}}
        plain = getattr(webhook._get_webhook_config, "__wrapped__", webhook._get_webhook_config)
        strict = stock_webhooks.strict(http.ensure_webhook_http_client)
        monkeypatch.setattr(webhook, "WEBHOOKS_CONFIG", allowed)
        monkeypatch.setattr(webhook, "_get_webhook_config", stock_webhooks.extended(plain))
        monkeypatch.setattr(webhook, "ensure_webhook_http_client", strict)
        monkeypatch.setattr(http, "_webhook_http_client", None)
        set_options(monkeypatch, webhook_secrets=(signing.write_secret(SECRET),))
        async with opened(tmp_path / "webhooks.db"):
            working = delivery.Delivery(runtime.current())
            task = asyncio.create_task(working.run())
            yield working
            task.cancel()
            await asyncio.wait([task])
            await working.stop()
            await http.stop_webhook_http_client()


SECRET = b"s" * 32


@pytest.mark.parametrize(
    "answers",
    [[[REFUSED]], [[ALLOWED], [REFUSED]], [[ALLOWED, REFUSED]], [[ALLOWED], [ALLOWED, REFUSED]]],
    ids=["at once", "after the check", "among others", "among others after the check"],
)
async def test_name_that_moves_to_a_refused_address_gets_no_webhook(
    checking: delivery.Delivery, monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]
) -> None:
    """DNS rebinding: the name server of the receiver answers each question as it likes."""
    with receiving() as receiver:
        Names(monkeypatch, *answers)
        port = receiver.url.rpartition(":")[2]
        [webhook_id] = await add(f"http://{REBINDING}:{port}/hook")
        checking.wake()
        row = await tried(webhook_id, 1)
    assert row is not None
    assert row["status"] == "pending"
    assert receiver.calls == []


async def test_address_that_was_checked_is_the_one_that_is_called(
    checking: delivery.Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is not resolved again between the last check and the connection."""
    with receiving() as receiver:
        names = Names(monkeypatch, [ALLOWED], [ALLOWED], [REFUSED])
        receiver.answer = lambda path: (307, {"location": "/b"}) if path == "/a" else (200, {})
        port = receiver.url.rpartition(":")[2]
        [first] = await add(f"http://{REBINDING}:{port}/hook")
        checking.wake()
        assert await tried(first, 1) is None
        assert names.asked == 2
        # A redirect to the same name is resolved and checked again.
        names.asked = 0
        [second] = await add(f"http://{REBINDING}:{port}/a")
        checking.wake()
        row = await tried(second, 1)
    assert row is not None
    assert "refused address" in row["error"]
    assert receiver.paths == ["/hook", "/a"]


async def test_signature_holds_for_one_body_one_time_and_one_tenant(
    checking: delivery.Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a receiver with the public package refuses, of a request that it or a thief recorded."""
    with receiving() as receiver:
        receiver.answer = lambda _: (503, {})
        [webhook_id] = await add(f"{receiver.url}/hook", "acme")
        checking.wake()
        row = await tried(webhook_id, 1)
        assert row is not None
        await pass_time(row)
        receiver.answer = lambda _: (200, {})
        checking.wake()
        assert await tried(webhook_id, 2) is None
    (headers, again), body = receiver.headers, receiver.calls[0][2]
    assert headers["webhook-id"] == again["webhook-id"] == delivery.message_id(webhook_id)
    acme, globex = (Webhook(signing.write_secret(signing.of_tenant(SECRET, each))) for each in TWO)
    assert acme.verify(body, headers)["status"] == "success"
    stamp = int(headers["webhook-timestamp"])
    forged: list[tuple[bytes, dict[str, str]]] = [
        (body.replace(b"success", b"error"), headers),
        (body + b" ", headers),
        (body, {**headers, "webhook-id": "msg_other"}),
        # A recorded request, and the same one with a fresh time.
        (body, {**headers, "webhook-timestamp": str(stamp + 1)}),
        (body, {name: headers[name] for name in headers if name != "webhook-signature"}),
        (body, {**headers, "webhook-signature": "v1,"}),
        (
            body,
            {**headers, "webhook-signature": headers["webhook-signature"].replace("v1,", "v2,")},
        ),
    ]
    for sent, named in forged:
        with pytest.raises(WebhookVerificationError):
            acme.verify(sent, named)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        globex.verify(body, headers)
    later = datetime.now(UTC) + timedelta(minutes=6)
    monkeypatch.setattr(
        webhooks_package,
        "datetime",
        SimpleNamespace(now=lambda tz: later, fromtimestamp=datetime.fromtimestamp),
    )
    with pytest.raises(WebhookVerificationError, match="too old"):
        acme.verify(body, headers)


TWO = ("acme", "globex")
