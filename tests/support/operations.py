"""What the tests of operations share: their rows, who asks, and handlers that can be watched."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from langgraph_sdk import Auth
from starlette.authentication import SimpleUser

Value = dict[str, Any]
Policy = Callable[[str, str, Value], Any]


async def rows(operation: Awaitable[AsyncIterator[Any]]) -> list[Any]:
    """Every row that an operation yields."""
    return [row async for row in await operation]


async def row(operation: Awaitable[AsyncIterator[Any]]) -> Any:
    """The only row that an operation yields."""
    found = await rows(operation)
    assert len(found) == 1, found
    return found[0]


async def page(
    operation: Awaitable[tuple[AsyncIterator[Any], int | None]],
) -> tuple[list[Any], int | None]:
    """The rows of a search, and its cursor."""
    found, cursor = await operation
    return [each async for each in found], cursor


def user(name: str, *permissions: str) -> Any:
    """Somebody who is authenticated, as operations get to know them."""
    who: Any = SimpleUser(name)
    return Auth.types.BaseAuthContext(user=who, permissions=list(permissions))


class Handlers:
    """Authorization handlers of a test.

    Attributes:
        asked: Each question: who, `resource.action`, and a copy of the value.
        policy: Answers them; returns a filter or None, may change the value, may raise.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Value]] = []
        self.policy: Policy = lambda name, event, value: None
        self.auth = Auth()

        @self.auth.on
        async def every(ctx: Auth.types.AuthContext, value: Value) -> Any:
            event = f"{ctx.resource}.{ctx.action}"
            self.asked.append((ctx.user.identity, event, dict(value)))
            return self.policy(ctx.user.identity, event, value)

    @property
    def events(self) -> list[str]:
        """What was asked, in order."""
        return [event for _, event, _ in self.asked]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Handlers":
        """Be the handlers of this process."""
        monkeypatch.setattr("langgraph_api.auth.custom.get_auth_instance", lambda: self.auth)
        return self


def owned(name: str, event: str, value: Value) -> Any:
    """The policy of most servers: what one creates is one's own, and nobody else's."""
    if event.endswith((".create", ".create_run")):
        value["metadata"]["owner"] = name
    return {"owner": name}
