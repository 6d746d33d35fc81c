"""The thread policy's routes: its own, and those of the platform that it changes.

Without the policy, the platform answers them all.
"""

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from server.routes.endpoint import Caller, Endpoint, Handler
from threadhold import hooks, users
from threadhold.host import PassedOn


class Governed(Endpoint):
    """A route for the agents under the thread policy. The arguments are those of `Endpoint`."""

    async def _answer(self, request: Request) -> ASGIApp:
        return await super()._answer(request) if agents() else PassedOn(request)

    async def _admit(self, user: users.User) -> None:
        # The platform asks the project's handlers for what the route does.
        return


def governed(route: str, **options: Any) -> Callable[[Handler], Governed]:
    """Make a `Governed` of a handler. The arguments are those of `Endpoint`."""
    return lambda handler: Governed(route, handler, **options)


def agents() -> frozenset[str]:
    """Return the agents under the thread policy; empty if the project has another one, or none."""
    settings = getattr(hooks.configured(), "thread_settings", None)
    return frozenset(settings.thread_policy_agents if settings is not None else ())


async def content_of(caller: Caller) -> Any:
    """Return the parsed JSON of a body. None: the platform refuses what it is."""
    return parse(await caller.request.body())


def parse(body: bytes) -> Any:
    """Parse a body as JSON. Return None if the body is not JSON.

    The encoding is UTF-8, as in the check of the JSON limits. A different one could bypass them.
    """
    try:
        return json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
