"""Webhooks: refuse addresses and redirects that the stock check lets through.

`langgraph_api` resolves and checks the host of a webhook, again before each connection. Its table
lacks networks that lead elsewhere, and it follows a redirect from https to http.
"""

import dataclasses
import functools
from typing import Any

import httpx

from threadhold.addresses import SPECIAL, is_downgrade


class WebhookRefused(RuntimeError):
    """A webhook redirects from https to http, where anybody on the way could read the answer."""


def extended(stock: Any) -> Any:
    """Return a function that adds `SPECIAL` to the networks that the configuration refuses."""

    @functools.cache
    def config() -> Any:
        found = stock()
        policy = dataclasses.replace(found.base_ssrf_policy, additional_blocked_cidrs=SPECIAL)
        return dataclasses.replace(found, base_ssrf_policy=policy)

    return config


def strict(stock: Any) -> Any:
    """Return a function that makes the client refuse downgrades."""

    async def ensure_client() -> Any:
        found = await stock()
        hooks = found.client.event_hooks
        if refuse_downgrade not in hooks["response"]:
            found.client.event_hooks = {**hooks, "response": [refuse_downgrade]}
        return found

    return ensure_client


async def refuse_downgrade(response: httpx.Response) -> None:
    """Refuse a redirect from https to http.

    Raises:
        WebhookRefused: the response is such a redirect.
        httpx.InvalidURL: its target is not a URL.
    """
    if is_downgrade(response):
        raise WebhookRefused(f"{response.request.url.host} redirects from https to http")
