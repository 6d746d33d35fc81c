"""The cache of schemas: what it keeps, for how long, and what it does not hold up."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.checkpoints import api_settings
from threadhold.stock import graph_schemas
from threadhold.stock.graph_schemas import MCP_CONCURRENCY, Cache, SchemasOnly, throttled

CONFIG = {"configurable": {"kind": "a"}}


class Asked:
    """A cache around a factory that counts its calls, and can be told to fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False
        self._cache = Cache(lambda graph: {"input_schema": graph})
        self._get_graph = self._cache.wrap(self._stock)

    @asynccontextmanager
    async def _stock(self, graph_id: str, config: Any, **options: Any) -> AsyncIterator[str]:
        self.calls += 1
        call = self.calls
        await asyncio.sleep(0)
        if self.fails:
            raise ValueError("no graph")
        yield f"{graph_id} {call}"

    async def schemas(self, graph_id: str = "made", config: Any = CONFIG) -> str:
        """What a request for schemas gets."""
        found: list[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async with self._get_graph(graph_id, config) as graph:
                found.append(self._cache.schemas(graph)["input_schema"])

        await SchemasOnly(app)({}, None, None)  # type: ignore[arg-type]
        return found[0]

    async def graph(self) -> Any:
        """What any other request gets."""
        async with self._get_graph("made", CONFIG) as graph:
            return graph


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def asked() -> Iterator[Asked]:
    with api_settings():
        from langgraph_api import graph

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(graph.GRAPHS, "made", lambda: None)
            patch.setitem(graph.GRAPHS, "other", lambda: None)
            yield Asked()


async def test_requests_at_the_same_time_make_the_schemas_once(asked: Asked) -> None:
    assert set(await asyncio.gather(*(asked.schemas() for _ in range(20)))) == {"made 1"}


async def test_schemas_are_kept_by_graph_and_config(asked: Asked) -> None:
    other = {"configurable": {"kind": "b"}}
    assert await asked.schemas() == "made 1"
    assert await asked.schemas(config=other) == "made 2"
    assert await asked.schemas("other") == "other 3"
    assert [await asked.schemas(), await asked.schemas(config=other)] == ["made 1", "made 2"]


async def test_what_a_factory_makes_is_asked_for_again_after_a_while(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(graph_schemas, "time", clock)
    assert await asked.schemas() == "made 1"
    clock.now += graph_schemas.FACTORY_SECONDS - 0.1
    assert await asked.schemas() == "made 1"
    clock.now += 0.2
    assert await asked.schemas() == "made 2"


async def test_a_failure_is_everybodys_own_and_is_not_kept(asked: Asked) -> None:
    asked.fails = True
    failures = await asyncio.gather(*(asked.schemas() for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in failures] == [ValueError] * 3
    asked.fails = False
    assert await asked.schemas() == "made 4"


async def test_a_request_that_is_cancelled_holds_up_no_other(asked: Asked) -> None:
    first = asyncio.ensure_future(asked.schemas())
    others = [asyncio.ensure_future(asked.schemas()) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    assert set(await asyncio.gather(*others)) == {"made 2"}


async def test_only_requests_for_schemas_get_what_is_kept(asked: Asked) -> None:
    await asked.schemas()
    assert await asked.graph() == "made 2"


async def test_what_cannot_be_told_apart_is_not_kept(asked: Asked) -> None:
    odd = {"configurable": {"kind": object()}}
    assert [await asked.schemas(config=odd) for _ in range(2)] == ["made 1", "made 2"]


class Slow:
    """A client whose every request takes some turns of the loop, and how many were under way."""

    def __init__(self) -> None:
        self.assistants = self
        self.runs = "the runs"
        self.under_way = self.most = 0

    async def get_schemas(self, number: int) -> int:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        self.under_way -= 1
        return number

    async def search(self) -> str:
        return "found"


async def test_one_list_of_tools_asks_for_a_few_schemas_at_a_time() -> None:
    slow = Slow()
    client = throttled(slow)
    answers = await asyncio.gather(*(client.assistants.get_schemas(n) for n in range(20)))
    assert answers == list(range(20))
    assert slow.most == MCP_CONCURRENCY
    assert client.runs == "the runs"
    assert await client.assistants.search() == "found"
