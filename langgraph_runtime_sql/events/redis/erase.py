"""Erase: has Redis forget what deleted runs and threads have told."""

from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis

from langgraph_runtime_sql.events.redis.entry import kept_in
from langgraph_runtime_sql.events.redis.link import Link
from langgraph_runtime_sql.events.stream_key import THREAD

PAGE = 1_000


async def erase(redis: Redis, link: Link, deleted: Iterable[tuple[str, str]]) -> None:
    """Delete the streams of threads, and the entries of runs in the streams of theirs.

    Args:
        redis: The client to use.
        link: Gives the names of the keys.
        deleted: Topic and run id each; the run id is `THREAD` for a thread.

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
            (name, len(fields[b"h"]) + len(fields[b"d"]))
            for name, fields in entries
            if any(each.event.run_id == run_id for each in kept_in([(name, fields)]))
        ]
        if found:
            pipeline = redis.pipeline(transaction=True)
            pipeline.xdel(log, *(name for name, _ in found))
            pipeline.hincrby(meta, "size", -sum(size for _, size in found))
            await pipeline.execute()
