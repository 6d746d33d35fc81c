"""Requests of tenants and of unknown clients take turns before they are authenticated."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from langgraph_runtime_sql import process
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.process import Configuration
from threadhold.http.layers import Layer
from threadhold.http.request_turns import RequestTurns


class App:
    """An application that knows its users by their token, and notes the order of its requests."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        token = dict(scope["headers"])[b"authorization"].decode()
        self.begun.append(token)
        if token.startswith("valid"):
            tenant = token.split()[1]
            scope["user"] = SimpleNamespace(identity="ada", tenant=tenant)
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_requests_of_one_client_do_not_delay_those_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = App()
    turns = Layer(app, [RequestTurns()])
    # The platform is configured when it starts, after the server was put together.
    configuration = Configuration(options=Options(tenant_key="tenant"))
    monkeypatch.setattr(process.process, "configuration", configuration)

    async def ask(token: str, count: int) -> None:
        async def send(message: Any) -> None:
            pass

        async def one(number: int) -> None:
            headers = [(b"authorization", token.encode()), (b"x-request-id", b"%d" % number)]
            scope = {"type": "http", "headers": headers, "client": ("192.0.2.1", 1000 + number)}
            await turns(scope, None, send)  # type: ignore[arg-type]  # nothing is received

        await asyncio.gather(*(one(number) for number in range(count)))

    async with asyncio.timeout(60):
        # Unknown tokens of one address: each takes turns.
        await asyncio.gather(ask("wrong", 300), ask("valid acme 1", 1), ask("valid other 1", 1))
        assert max(app.begun.index("valid acme 1"), app.begun.index("valid other 1")) < 10
        await ask("valid acme 2", 1)
        app.begun.clear()
        # Known ones, by their tenant: a tenant's second user adds nothing to its turns.
        acme = (ask(f"valid acme {user}", 150) for user in (1, 2))
        await asyncio.gather(*acme, ask("valid other 1", 20), ask("new", 20))
    last = max(index for index, token in enumerate(app.begun) if token == "valid other 1")
    assert last < 70
    assert app.begun.index("new") < 10
