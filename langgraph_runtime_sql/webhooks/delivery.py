"""Delivery: send the webhooks of the outbox, again until they arrive or a day is over."""

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx
import structlog
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, key_texts
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.telemetry import metrics
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.webhooks import outbox, signing

logger = structlog.stdlib.get_logger(__name__)

# Below `outbox.CLAIM`, so that no other process delivers meanwhile.
REQUEST_SECONDS = 20.0
TOGETHER = 32
# One tenant's dead receivers must not delay the webhooks of others.
TOGETHER_OF_TENANT = 8
# Finds what a process that died has left.
SWEEP_SECONDS = 15.0
FIRST_RETRY_SECONDS = 5.0
MAX_RETRY_SECONDS = 3 * 3600.0
STOP_SECONDS = 3.0
# After the other redirects a client sends a GET, so the webhook would be lost.
KEEP_BODY = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)
MAX_REDIRECTS = 5
EXPIRE_SECONDS = 3600.0


class Delivery:
    """Delivers due webhooks until it is cancelled.

    Args:
        opened: The running platform.
    """

    def __init__(self, opened: Runtime) -> None:
        self._runtime = opened
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._active: dict[asyncio.Task[None], str | None] = {}
        self._expires = elapsed() + EXPIRE_SECONDS

    def wake(self) -> None:
        """Look for due webhooks now. Call it from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def run(self) -> None:
        """Deliver webhooks until cancelled."""
        database = self._runtime.database
        if database.alone:
            await database.write(outbox.free_claims)
        while True:
            self._woken.clear()
            wait = SWEEP_SECONDS
            try:
                wait = await self._step()
            except Exception:
                logger.exception("Looking for webhooks failed", action="webhooks_failed")
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def stop(self) -> None:
        """Give the deliveries under way a short time. The rest is delivered after the next start."""
        if self._active:
            _, late = await asyncio.wait(self._active, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()

    async def _step(self) -> float:
        """Start deliveries. Return the seconds until the next look."""
        database = self._runtime.database
        free = TOGETHER - len(self._active)
        if free > 0:
            active = Counter(name for name in self._active.values() if name is not None)
            claim = partial(outbox.claim, limit=free, active=active, most=TOGETHER_OF_TENANT)
            if await database.read(outbox.next_due) is not None:
                for row in await database.write(claim):
                    self._start(row)
        if elapsed() >= self._expires:
            self._expires = elapsed() + EXPIRE_SECONDS
            await database.write(outbox.expire)
        due = await database.read(outbox.next_due)
        return SWEEP_SECONDS if due is None else min(SWEEP_SECONDS, max(0.25, due))

    def _start(self, row: Row) -> None:
        task = asyncio.create_task(self._deliver(row), name=f"webhook-{row['webhook_id']}")
        self._active[task] = row["tenant"]
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._active[task]
        self._woken.set()

    async def _deliver(self, row: Row) -> None:
        fields = {"run_id": str(row["run_id"]), "webhook_id": str(row["webhook_id"])}
        database = self._runtime.database
        try:
            error, retry_in = await self._send(row)
            counted = metrics.process().webhooks
            if error is None:
                counted.labels("delivered").inc()
                await database.write(partial(outbox.delivered, row=row))
                logger.info("Webhook delivered", attempt=row["attempts"], **fields)
                return
            status = await database.write(
                partial(outbox.failed, row=row, error=error, retry_in=retry_in)
            )
            counted.labels("dead" if status == "dead" else "retried").inc()
        except Exception:
            # Its claim ends, and then it is due again.
            logger.exception("Delivery of a webhook failed", action="webhooks_failed", **fields)
            return
        report = logger.error if status == "dead" else logger.warning
        report("Webhook failed", why=error, attempt=row["attempts"], status=status, **fields)

    async def _send(self, row: Row) -> tuple[str | None, float | None]:
        """Send a webhook. Return why it failed, or None, and the seconds until the next attempt."""
        if not row["message"]:
            return "the tenant's key was erased", None
        url = row["message"]["url"]
        retry_in = backoff(row["attempts"])
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                # Host names are resolved for the tenant, within its share of look-ups.
                with scope.within(_scope_of(row["tenant"])):
                    answer = await _post(url, *self._request(row))
        except HTTPException as error:
            return f"refused address: {error.detail}", retry_in
        except TimeoutError:
            return f"no answer within {REQUEST_SECONDS:g} s", retry_in
        except Exception as error:  # noqa: BLE001  # stored and logged by the caller
            return f"{type(error).__name__}: {error}", retry_in
        if answer.is_success:
            return None, None
        if answer.status_code == HTTPStatus.GONE:
            return "HTTP 410: the receiver wants no more", None
        asked = retry_after(answer.headers.get("retry-after"))
        if answer.has_redirect_location:
            return f"HTTP {answer.status_code}: only 307 and 308 redirect the body", retry_in
        return f"HTTP {answer.status_code}", max(retry_in, asked)

    def _request(self, row: Row) -> tuple[bytes, dict[str, str]]:
        from langgraph_api.config import WEBHOOKS_CONFIG

        configured: Any = WEBHOOKS_CONFIG or {}
        now = datetime.now(UTC)
        content = {**row["message"]["body"], "webhook_sent_at": now.isoformat()}
        if allowed := configured.get("allowed_fields"):
            content = {name: content[name] for name in content if name in allowed}
        body = json_codec.dumps(content).encode()
        return body, {
            "content-type": "application/json",
            **(configured.get("headers") or {}),
            **signing.headers(
                map(key_texts.webhook_key, self._runtime.options.webhook_secrets),
                row["tenant"],
                message_id(row["webhook_id"]),
                int(now.timestamp()),
                body,
            ),
        }


def message_id(webhook_id: UUID) -> str:
    """Return the id that the receiver sees, the same for each attempt."""
    return f"msg_{webhook_id.hex}"


def backoff(attempts: int) -> float:
    """Return the seconds until the attempt after this one: exponential, with jitter."""
    longest = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 3.0 ** min(attempts - 1, 20))
    return longest * random.uniform(0.75, 1.25)  # no secret


def retry_after(header: str | None) -> float:
    """Return the seconds of the header `Retry-After`, at most a day; 0 without or with a bad one."""
    if header is None:
        return 0.0
    longest = outbox.GIVE_UP.total_seconds()
    if header.isascii() and header.isdigit():
        # A number of any length, which `float` and `int` refuse.
        return min(float(header), longest)
    try:
        date = parsedate_to_datetime(header)
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (aware - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(0.0, seconds), longest)


def _scope_of(tenant: str | None) -> scope.Scope:
    return scope.EVERYTHING if tenant is None else scope.TenantScope(tenant)


async def _post(url: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    """Send a request to a checked address, without reading the answer's body."""
    from langgraph_api import webhook
    from langgraph_api.http import get_loopback_client

    # Again, because a deployment may have changed what it allows.
    await webhook.validate_webhook_url_or_raise(url)
    # As an attribute, because the host makes this client stricter.
    holder = (
        get_loopback_client() if url.startswith("/") else await webhook.ensure_webhook_http_client()
    )
    client: httpx.AsyncClient = holder.client
    request = client.build_request("POST", url, content=body, headers=headers)
    for _ in range(MAX_REDIRECTS + 1):
        # httpx itself would read the whole body of a redirect, which may be endless.
        answer = await client.send(request, stream=True, follow_redirects=False)
        await answer.aclose()
        if answer.status_code not in KEEP_BODY or answer.next_request is None:
            return answer
        request = answer.next_request
        await webhook.validate_webhook_url_or_raise(str(request.url))
    raise httpx.TooManyRedirects(f"more than {MAX_REDIRECTS} redirects", request=request)
