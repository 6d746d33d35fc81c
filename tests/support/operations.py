"""Helpers for tests of operations: rows, users, and authorization handlers that record calls."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from langgraph_sdk import Auth
from starlette.authentication import SimpleUser

Value = dict[str, Any]
Policy = Callable[[str, str, Value], Any]


async def rows(operation: Awaitable[AsyncIterator[Any]]) -> list[Any]:
    """Return every row that an operation yields."""
    return [row async for row in await operation]


async def row(operation: Awaitable[AsyncIterator[Any]]) -> Any:
    """Return the only row that an operation yields."""
    found = await rows(operation)
    assert len(found) == 1, found
    return found[0]


async def page(
    operation: Awaitable[tuple[AsyncIterator[Any], int | None]],
) -> tuple[list[Any], int | None]:
    """Return the rows of a search and its cursor."""
    found, cursor = await operation
    return [each async for each in found], cursor


def user(name: str, *permissions: str) -> Any:
    """Return the authentication context of a user, as operations receive it."""
    who: Any = SimpleUser(name)
    return Auth.types.BaseAuthContext(user=who, permissions=list(permissions))


class Handlers:
    """Authorization handlers of a test.

    Attributes:
        asked: Each call: the user, `resource.action`, and a copy of the value.
        policy: The handlers' function. It returns a filter or None, changes the value, or raises.
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
        """Return `resource.action` of each call, in order."""
        return [event for _, event, _ in self.asked]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Handlers":
        """Make these the handlers of this process."""
        monkeypatch.setattr("langgraph_api.auth.custom.get_auth_instance", lambda: self.auth)
        return self


def owned(name: str, event: str, value: Value) -> Any:
    """Restrict each user to the resources that the user created."""
    if event.endswith((".create", ".create_run")):
        value["metadata"]["owner"] = name
    return {"owner": name}
