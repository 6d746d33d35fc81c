"""Places: how many calls a connector has at once. One tenant never has all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary, WeakValueDictionary

from my_agent.diagnosis.connector import Connector

_Key = tuple[str, str | None, int]

# A semaphore belongs to its event loop, and lives while a call holds it or waits for it.
_semaphores: WeakKeyDictionary[
    asyncio.AbstractEventLoop, WeakValueDictionary[_Key, asyncio.Semaphore]
] = WeakKeyDictionary()


@asynccontextmanager
async def taken(connector: Connector, tenant: str) -> AsyncIterator[None]:
    """Wait for a place of the connector, and hold it until the end of the block."""
    # Held by these names, which keep them alive.
    own = _semaphore(connector.name, tenant, max(1, connector.at_once - 1))
    shared = _semaphore(connector.name, None, connector.at_once)
    async with own, shared:
        yield


def _semaphore(name: str, tenant: str | None, most: int) -> asyncio.Semaphore:
    of_loop = _semaphores.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    key = (name, tenant, most)
    found = of_loop.get(key)
    if found is None:
        found = of_loop[key] = asyncio.Semaphore(most)
    return found
