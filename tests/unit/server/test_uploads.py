"""Uploads: a long document delays no other tenant."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from my_agent.chat.documents import uploads
from my_agent.chat.documents.chunking import Passage
from my_agent.turns import TenantThreads
from server.routes import documents


async def test_tenants_take_turns_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    worked, begun = list[str](), threading.Event()

    async def parse(tenant: str, name: str, content: bytes) -> list[Passage]:
        return []

    def store(tenant: str, name: str, content: bytes, passages: list[Passage]) -> Iterator[float]:
        for batch in range(len(content)):
            begun.wait()
            worked.append(tenant)
            yield (batch + 1) / len(content)

    monkeypatch.setattr(uploads, "is_stored", lambda *document: False)
    monkeypatch.setattr(uploads, "parse", parse)
    monkeypatch.setattr(uploads, "store", store)
    monkeypatch.setattr(uploads, "find", lambda tenant, name: None)
    progress: asyncio.Queue[float | None] = asyncio.Queue()
    together = asyncio.gather(
        documents._store("long", "a.md", bytes(50), progress),
        documents._store("short", "b.md", bytes(2), progress),
    )
    await asyncio.sleep(0)
    begun.set()
    await together
    assert worked.count("long") == 50
    assert len(worked) - 1 - worked[::-1].index("short") < 10


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness of threads")
def test_niceness_is_of_the_thread_only() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert TenantThreads("nice", niceness=19).submit("acme", niceness).result(5) == 19
    assert niceness() < 19
