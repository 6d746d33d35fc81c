"""Erase deleted runs and threads from Redis."""

from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis

from langgraph_runtime_sql.events.redis.entry import stored_events
from langgraph_runtime_sql.events.redis.link import Link
from langgraph_runtime_sql.events.stream_key import THREAD

PAGE = 1_000


async def erase(redis: Redis, link: Link, deleted: Iterable[tuple[str, str]]) -> None:
    """Delete the streams of threads, and the entries of runs.

    Args:
        redis: The client to use.
        link: Names the keys.
        deleted: Pairs of topic and run id; the run id is `THREAD` for a thread.

    Raises:
        one of FAILURES: Redis does not answer.
    """
    for topic, run_id in deleted:
        log, meta = link.stream(topic), link.meta(topic)
        if run_id == THREAD:
            await redis.delete(log, meta)
        elif await redis.type(log) == b"stream":
            await _erase_run(redis, log, meta, run_id)


async def _erase_run(redis: Any, log: str, meta: str, run_id: str) -> None:
    after = b"-"
    while entries := await redis.xrange(log, after, "+", count=PAGE):
        after = b"(" + entries[-1][0]
        found = [
            (entry_id, len(fields[b"h"]) + len(fields[b"d"]))
            for entry_id, fields in entries
            if any(each.event.run_id == run_id for each in stored_events([(entry_id, fields)]))
        ]
        if found:
            pipeline = redis.pipeline(transaction=True)
            pipeline.xdel(log, *(entry_id for entry_id, _ in found))
            pipeline.hincrby(meta, "size", -sum(size for _, size in found))
            await pipeline.execute()
